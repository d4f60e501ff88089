//go:build !kubernetes_1_37

package main

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// By API version and kind, as in the extender's client/interface.py; and what kube-scheduler posts to an extender.
var roots = map[string]any{
	"v1/Pod":                               v1.Pod{},
	"v1/Node":                              v1.Node{},
	"v1/Namespace":                         v1.Namespace{},
	"v1/Service":                           v1.Service{},
	"v1/ReplicationController":             v1.ReplicationController{},
	"v1/PersistentVolume":                  v1.PersistentVolume{},
	"v1/PersistentVolumeClaim":             v1.PersistentVolumeClaim{},
	"apps/v1/ReplicaSet":                   appsv1.ReplicaSet{},
	"apps/v1/StatefulSet":                  appsv1.StatefulSet{},
	"storage.k8s.io/v1/StorageClass":       storagev1.StorageClass{},
	"storage.k8s.io/v1/CSINode":            storagev1.CSINode{},
	"storage.k8s.io/v1/CSIDriver":          storagev1.CSIDriver{},
	"storage.k8s.io/v1/CSIStorageCapacity": storagev1.CSIStorageCapacity{},
	"storage.k8s.io/v1/VolumeAttachment":   storagev1.VolumeAttachment{},
	"policy/v1/PodDisruptionBudget":        policyv1.PodDisruptionBudget{},
	"scheduling.k8s.io/v1/PriorityClass":   schedulingv1.PriorityClass{},
	"scheduling.k8s.io/v1alpha2/PodGroup":  schedulingv1alpha2.PodGroup{},
	"coordination.k8s.io/v1/Lease":         coordinationv1.Lease{},
	"ExtenderArgs":                         extenderv1.ExtenderArgs{},
	"ExtenderPreemptionArgs":               extenderv1.ExtenderPreemptionArgs{},
	"ExtenderBindingArgs":                  extenderv1.ExtenderBindingArgs{},
}

// Kinds that a file may hold besides, and whose pods are made of their templates.
var workloads = map[string]any{
	"apps/v1/Deployment": appsv1.Deployment{},
	"batch/v1/Job":       batchv1.Job{},
	"batch/v1/CronJob":   batchv1.CronJob{},
}
