// What the real plugins' queueing hints say: one case a line in, `true` (worth another try) or `false` a line out.
//
// tests/parity/hint_cases.py makes the cases and `python -m tests.parity.record_hints` records the answers. A case goes
// the whole way: the events that kube-scheduler makes of the change, the plugin's registration, and its hint functions.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	_ "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodename"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/schedulinggates"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/tainttoleration"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// A change of a pod or a node (`kind`), and the pod that `plugin` refused before it. No old is a creation, no new a deletion.
type hintCase struct {
	Plugin string          `json:"plugin"`
	Kind   string          `json:"kind"`
	Pod    *v1.Pod         `json:"pod"`
	Old    json.RawMessage `json:"old"`
	New    json.RawMessage `json:"new"`
}

func main() {
	ctx := context.Background()
	plugins := newPlugins(ctx)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		var c hintCase
		must(json.Unmarshal(lines.Bytes(), &c))
		fmt.Fprintln(out, c.wakes(ctx, plugins[c.Plugin]))
	}
	must(lines.Err())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func newPlugins(ctx context.Context) map[string]fwk.EnqueueExtensions {
	handle, err := frameworkruntime.NewFramework(ctx, nil, nil,
		frameworkruntime.WithSnapshotSharedLister(cache.NewEmptySnapshot()),
		frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(fake.NewClientset(), 0)))
	must(err)
	features := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	features.EnableDRAExtendedResource = false // device classes are not modelled
	plugins := map[string]fwk.EnqueueExtensions{}
	add := func(plugin fwk.Plugin, err error) {
		must(err)
		plugins[plugin.Name()] = plugin.(fwk.EnqueueExtensions)
	}
	var noArgs runtime.Object
	add(nodename.New(ctx, noArgs, handle, features))
	add(nodeports.New(ctx, noArgs, handle, features))
	add(nodeunschedulable.New(ctx, noArgs, handle, features))
	add(tainttoleration.New(ctx, noArgs, handle, features))
	add(schedulinggates.New(ctx, noArgs, handle, features))
	add(nodeaffinity.New(ctx, &config.NodeAffinityArgs{}, handle, features))
	add(interpodaffinity.New(ctx, &config.InterPodAffinityArgs{HardPodAffinityWeight: 1}, handle, features))
	add(podtopologyspread.New(ctx, &config.PodTopologySpreadArgs{DefaultingType: config.SystemDefaulting}, handle, features))
	cpu := config.ScoringStrategy{Type: config.LeastAllocated, Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}}}
	add(noderesources.NewFit(ctx, &config.NodeResourcesFitArgs{ScoringStrategy: &cpu}, handle, features))
	return plugins
}

func (c *hintCase) wakes(ctx context.Context, plugin fwk.EnqueueExtensions) bool {
	events, oldObj, newObj := c.happened()
	registered, err := plugin.EventsToRegister(ctx)
	must(err)
	for _, each := range append(registered, taintCompanion(registered)...) {
		for _, event := range events {
			if !framework.MatchClusterEvents(each.Event, event) {
				continue
			}
			if each.QueueingHintFn == nil {
				return true
			}
			hint, err := each.QueueingHintFn(klog.FromContext(ctx), c.Pod, oldObj, newObj)
			must(err)
			if hint == fwk.Queue {
				return true
			}
		}
	}
	return false
}

// The scheduler registers a node's taints for plugins that wait for new nodes and did not do so itself.
func taintCompanion(registered []fwk.ClusterEventWithHint) []fwk.ClusterEventWithHint {
	added, tainted := false, false
	for _, each := range registered {
		if each.Event.Resource == fwk.Node {
			added = added || each.Event.ActionType&fwk.Add != 0
			tainted = tainted || each.Event.ActionType&fwk.UpdateNodeTaint != 0
		}
	}
	if !added || tainted {
		return nil
	}
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeTaint}}}
}

func (c *hintCase) happened() (events []fwk.ClusterEvent, oldObj, newObj any) {
	if c.Kind == "pod" {
		oldPod, newPod := decoded[v1.Pod](c.Old), decoded[v1.Pod](c.New)
		switch {
		case oldPod == nil:
			return []fwk.ClusterEvent{either(newPod, framework.EventAssignedPodAdd, framework.EventUnscheduledPodAdd)}, nil, newPod
		case newPod == nil:
			return []fwk.ClusterEvent{either(oldPod, framework.EventAssignedPodDelete, framework.EventUnscheduledPodDelete)}, oldPod, nil
		}
		return framework.PodSchedulingPropertiesChange(newPod, oldPod), oldPod, newPod
	}
	oldNode, newNode := decoded[v1.Node](c.Old), decoded[v1.Node](c.New)
	switch {
	case oldNode == nil:
		return []fwk.ClusterEvent{{Resource: fwk.Node, ActionType: fwk.Add}}, nil, newNode
	case newNode == nil:
		return []fwk.ClusterEvent{{Resource: fwk.Node, ActionType: fwk.Delete}}, oldNode, nil
	}
	return framework.NodeSchedulingPropertiesChange(newNode, oldNode), oldNode, newNode
}

// A nominated pod counts as if it were on its node.
func either(pod *v1.Pod, placed, waiting fwk.ClusterEvent) fwk.ClusterEvent {
	if pod.Spec.NodeName != "" || pod.Status.NominatedNodeName != "" {
		return placed
	}
	return waiting
}

func decoded[T any](raw json.RawMessage) *T {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	obj := new(T)
	must(json.Unmarshal(raw, obj))
	return obj
}
