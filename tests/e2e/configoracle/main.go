// What kube-scheduler finds wrong with its configuration: one file (as JSON) a line in, its mistakes as a list a line out.
//
// tests/parity/config_cases.py makes the files and `python -m tests.parity.record_configs` records the answers. A file goes
// the way of --config: decoded strictly, defaulted, validated; NodeResourcesFit checks its arguments when it is built.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	_ "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		answer, err := json.Marshal(mistakes(in.Bytes()))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(answer))
	}
}

func mistakes(file []byte) []string {
	found := []string{}
	object, _, err := scheme.Codecs.UniversalDecoder().Decode(file, nil, nil)
	if err != nil {
		return append(found, "decode: "+err.Error())
	}
	configuration, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok {
		return append(found, fmt.Sprintf("decode: %T", object))
	}
	configuration.APIVersion = "kubescheduler.config.k8s.io/v1"
	errs := []error{}
	if err := validation.ValidateKubeSchedulerConfiguration(configuration); err != nil {
		errs = append(errs, err.Errors()...)
	}
	for i, profile := range configuration.Profiles {
		for j, plugin := range profile.PluginConfig {
			if args, ok := plugin.Args.(*config.NodeResourcesFitArgs); ok {
				path := field.NewPath("profiles").Index(i).Child("pluginConfig").Index(j).Child("args")
				if err := validation.ValidateNodeResourcesFitArgs(path, args); err != nil {
					errs = append(errs, err)
				}
			}
		}
	}
	if len(errs) > 0 {
		for _, err := range utilerrors.Flatten(utilerrors.NewAggregate(errs)).Errors() {
			found = append(found, err.Error())
		}
	}
	return found
}
