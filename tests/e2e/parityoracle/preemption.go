// The pods that DefaultPreemption would evict, on each node and at last.
package main

import (
	"maps"
	"math"
	"slices"
	"sort"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// All candidates from the first node on, whether or not the pod may preempt; postFilter is what comes of it.
func (e *evaluation) preempted() (jsonObject, error) {
	eligible, reason := e.preemption.PodEligibleToPreemptOthers(e.ctx, e.pod, e.statuses.Get(e.pod.Status.NominatedNodeName))
	answer := jsonObject{"eligible": eligible, "numCandidates": 0, "perNode": jsonObject{}, "criteria": jsonObject{},
		"potentialNodes": []string{}, "candidates": []string{}, "chosenSet": nil}
	if reason != "" {
		answer["ineligibleReason"] = reason
	}
	potential, err := e.statuses.NodesForStatusCode(e.snapshot, fwk.Unschedulable)
	if err != nil {
		return nil, err
	}
	order := map[string]int{}
	for i, name := range names(e.nodes) {
		order[name] = i
	}
	sort.Slice(potential, func(i, j int) bool { return order[potential[i].Node().Name] < order[potential[j].Node().Name] })
	if len(potential) > 0 {
		e.dryRun(potential, answer)
	}
	result, status := e.framework.RunPostFilterPlugins(e.ctx, e.state, e.pod, e.statuses)
	post := jsonObject{"verdict": verdict(status), "hasResult": result != nil, "nominatedNode": "", "nominatingMode": 0}
	if result != nil {
		post["nominatedNode"], post["nominatingMode"] = result.NominatedNodeName, int(result.Mode())
	}
	answer["postFilter"] = post
	return answer, nil
}

func (e *evaluation) dryRun(potential []fwk.NodeInfo, answer jsonObject) {
	answer["potentialNodes"] = names(potential)
	_, enough := e.preemption.GetOffsetAndNumCandidates(int32(len(potential)))
	answer["numCandidates"] = enough
	perNode := jsonObject{}
	for _, node := range potential {
		perNode[node.Node().Name] = e.preemptedOn(node)
	}
	answer["perNode"] = perNode
	candidates, _, err := e.preemption.Evaluator.DryRunPreemption(e.ctx, e.state, e.pod, potential, e.pdbs, 0, enough)
	if err != nil {
		answer["dryRunError"] = err.Error()
	}
	victims, found := map[string]*extenderv1.Victims{}, []string{}
	for _, candidate := range candidates {
		victims[candidate.Name()] = candidate.Victims()
		found = append(found, candidate.Name())
	}
	answer["candidates"] = found
	answer["criteria"], answer["chosenSet"] = criteria(victims)
}

// One node's dry run.
func (e *evaluation) preemptedOn(node fwk.NodeInfo) jsonObject {
	found, statuses, _ := e.preemption.Evaluator.DryRunPreemption(e.ctx, e.state, e.pod, []fwk.NodeInfo{node}, e.pdbs, 0, 1)
	if len(found) == 0 {
		return jsonObject{"verdict": verdict(statuses.Get(node.Node().Name)), "numPDBViolations": 0}
	}
	victims := found[0].Victims()
	return jsonObject{"verdict": verdict(nil), "victims": keys(victims.Pods), "numPDBViolations": victims.NumPDBViolations}
}

func keys(pods []*v1.Pod) []string {
	var all []string
	for _, pod := range pods {
		all = append(all, pod.Namespace+"/"+pod.Name)
	}
	return all
}

// What the order of candidates goes by, and those that none is better than.
func criteria(victims map[string]*extenderv1.Victims) (jsonObject, []string) {
	measured := jsonObject{}
	ranks := map[string][5]int64{}
	for name, v := range victims {
		var sum int64
		for _, pod := range v.Pods {
			sum += int64(priority(pod)) + math.MaxInt32 + 1
		}
		earliest := util.GetEarliestPodStartTime(v).UnixNano()
		highest := int64(priority(v.Pods[0]))
		measured[name] = jsonObject{"numPDBViolations": v.NumPDBViolations, "highestPriority": highest, "sumPriorities": sum,
			"numVictims": len(v.Pods), "earliestStartUnixNano": earliest}
		ranks[name] = [5]int64{v.NumPDBViolations, highest, sum, int64(len(v.Pods)), -earliest}
	}
	best := []string{}
	for name, rank := range ranks {
		beaten := slices.ContainsFunc(slices.Collect(maps.Values(ranks)), func(other [5]int64) bool {
			return slices.Compare(other[:], rank[:]) < 0
		})
		if !beaten {
			best = append(best, name)
		}
	}
	sort.Strings(best)
	return measured, best
}

func priority(pod *v1.Pod) int32 {
	if pod.Spec.Priority != nil {
		return *pod.Spec.Priority
	}
	return 0
}
