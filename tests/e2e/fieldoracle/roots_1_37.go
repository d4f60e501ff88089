//go:build kubernetes_1_37

package main

import (
	batchv1 "k8s.io/api/batch/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
)

// The kinds that are newer than the modules of tests/e2e/go.mod, and those that have newer fields.
var roots = map[string]any{
	"scheduling.k8s.io/v1beta1/PodGroup":           schedulingv1beta1.PodGroup{},
	"scheduling.k8s.io/v1alpha3/CompositePodGroup": schedulingv1alpha3.CompositePodGroup{},
}

var workloads = map[string]any{
	"batch/v1/Job": batchv1.Job{},
}
