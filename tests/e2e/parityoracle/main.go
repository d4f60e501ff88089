// What the real scheduler's plugins, framework, cache, nominator and DefaultPreemption say of scenarios: one a line in, one
// answer a line out, in the schema of tests/parity/data. Only the deletion of victims is left out.
//
// tests/parity/random_clusters.py makes scenarios, `python -m tests.parity.record_fresh` records and compares the answers.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

func main() {
	klog.SetLogger(klog.Logger{})
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	metrics.Register()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var s scenario
		answer := jsonObject{}
		err := json.Unmarshal(lines.Bytes(), &s)
		if err == nil {
			err = answered(&s, answer)
		}
		if err != nil {
			answer = jsonObject{"error": err.Error()}
		}
		answer["name"] = s.Name
		must(out.Encode(answer))
	}
	must(lines.Err())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

type jsonObject map[string]any

func answered(s *scenario, answer jsonObject) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w, err := newWorld(ctx, s)
	if err != nil {
		return err
	}
	nodes, err := w.snapshot.List()
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		return errors.New("no nodes available to schedule pods")
	}
	e := &evaluation{world: w, ctx: ctx, pod: s.Pending, nodes: nodes, state: framework.NewCycleState(),
		statuses: framework.NewDefaultNodeToStatus(), verdicts: map[string]*fwk.Status{}}
	return e.answer(answer)
}

// One pod's cycle over one snapshot, as in schedulePod, with every node looked at.
type evaluation struct {
	*world
	ctx      context.Context
	pod      *v1.Pod
	nodes    []fwk.NodeInfo
	state    fwk.CycleState
	statuses *framework.NodeToStatus
	verdicts map[string]*fwk.Status
}

func (e *evaluation) answer(answer jsonObject) error {
	answer["nodeOrder"] = names(e.nodes)
	result, status, narrowing := e.framework.RunPreFilterPlugins(e.ctx, e.state, e.pod)
	if status.Code() == fwk.Error {
		return status.AsError()
	}
	answer["preFilter"] = e.preFilter(result, status, narrowing)
	diagnosis := framework.Diagnosis{NodeToStatus: e.statuses}
	var tried, feasible []fwk.NodeInfo
	if status.IsSuccess() {
		tried = e.narrowed(result, narrowing)
		var err error
		if feasible, err = e.filtered(tried); err != nil {
			return err
		}
	} else {
		e.statuses.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
	}
	perNode, err := e.scored(feasible, answer)
	if err != nil {
		return err
	}
	answer["nodes"] = e.perNode(tried, feasible, perNode)
	answer["feasible"] = names(feasible)
	if len(feasible) > 0 {
		answer["bestSet"] = e.best(perNode)
		return nil
	}
	fitError := &framework.FitError{Pod: e.pod, NumAllNodes: len(e.nodes), Diagnosis: diagnosis}
	answer["fitError"] = fitError.Error()
	if e.preemption != nil {
		answer["preemption"], err = e.preempted()
	}
	return err
}

func (e *evaluation) preFilter(result *fwk.PreFilterResult, status *fwk.Status, narrowing sets.Set[string]) jsonObject {
	answer := jsonObject{"verdict": verdict(status), "allNodes": result.AllNodes(),
		"skipFilterPlugins": sets.List(e.state.GetSkipFilterPlugins())}
	if !result.AllNodes() {
		answer["nodeNames"] = sets.List(result.NodeNames)
	}
	if len(narrowing) > 0 {
		answer["pluginsWithNodes"] = sets.List(narrowing)
	}
	return answer
}

func (e *evaluation) narrowed(result *fwk.PreFilterResult, narrowing sets.Set[string]) []fwk.NodeInfo {
	if result.AllNodes() {
		return e.nodes
	}
	e.statuses.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(narrowing))))
	var tried []fwk.NodeInfo
	for _, node := range e.nodes {
		if result.NodeNames.Has(node.Node().Name) {
			tried = append(tried, node)
		}
	}
	return tried
}

func (e *evaluation) filtered(tried []fwk.NodeInfo) (feasible []fwk.NodeInfo, err error) {
	for _, node := range tried {
		name := node.Node().Name
		status := e.framework.RunFilterPluginsWithNominatedPods(e.ctx, e.state, e.pod, node)
		if status.Code() == fwk.Error {
			return nil, status.AsError()
		}
		if status.IsSuccess() {
			if message, found := e.scenario.ExtenderUnresolvable[name]; found {
				status = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, message)
			} else if message, found := e.scenario.ExtenderFailed[name]; found {
				status = fwk.NewStatus(fwk.Unschedulable, message)
			}
		}
		e.verdicts[name] = status
		if status.IsSuccess() {
			feasible = append(feasible, node)
		} else {
			e.statuses.Set(name, status)
		}
	}
	return feasible, nil
}

type scores struct {
	node  string
	each  jsonObject
	total int64
}

// Each plugin's raw, normalized and weighted scores; held against what RunScorePlugins makes of them.
func (e *evaluation) scored(feasible []fwk.NodeInfo, answer jsonObject) ([]scores, error) {
	if len(feasible) == 0 {
		return nil, nil
	}
	status := e.framework.RunPreScorePlugins(e.ctx, e.state, e.pod, feasible)
	answer["preScore"] = verdict(status)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	answer["skipScorePlugins"] = sets.List(e.state.GetSkipScorePlugins())
	together, status := e.framework.RunScorePlugins(e.ctx, e.state, e.pod, feasible)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	made := make([]scores, len(feasible))
	for i := range made {
		made[i] = scores{node: feasible[i].Node().Name, each: jsonObject{}, total: together[i].TotalScore}
	}
	for index, score := range together[0].Scores {
		if err := e.alone(feasible, score.Name, func(i int, raw, norm int64) {
			made[i].each[score.Name] = jsonObject{"raw": raw, "norm": norm, "weighted": together[i].Scores[index].Score}
		}); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func (e *evaluation) alone(feasible []fwk.NodeInfo, name string, put func(i int, raw, norm int64)) error {
	plugin := e.plugins[name].(fwk.ScorePlugin)
	list := make(fwk.NodeScoreList, len(feasible))
	raw := make([]int64, len(feasible))
	for i, node := range feasible {
		score, status := plugin.Score(e.ctx, e.state, e.pod, node)
		if !status.IsSuccess() {
			return status.AsError()
		}
		raw[i], list[i] = score, fwk.NodeScore{Name: node.Node().Name, Score: score}
	}
	if extensions := plugin.ScoreExtensions(); extensions != nil {
		if status := extensions.NormalizeScore(e.ctx, e.state, e.pod, list); !status.IsSuccess() {
			return status.AsError()
		}
	}
	for i := range list {
		put(i, raw[i], list[i].Score)
	}
	return nil
}

func (e *evaluation) best(perNode []scores) []string {
	highest, best := int64(math.MinInt64), []string{}
	for _, s := range perNode {
		if s.node == e.pod.Status.NominatedNodeName {
			return []string{s.node}
		}
		if s.total > highest {
			highest, best = s.total, nil
		}
		if s.total == highest {
			best = append(best, s.node)
		}
	}
	return best
}

func (e *evaluation) perNode(tried, feasible []fwk.NodeInfo, made []scores) []jsonObject {
	triedNames, scoresOf := sets.New(names(tried)...), map[string]scores{}
	for _, s := range made {
		scoresOf[s.node] = s
	}
	var answer []jsonObject
	for _, node := range e.nodes {
		name := node.Node().Name
		status, found := e.verdicts[name]
		if !found {
			status = e.statuses.AbsentNodesStatus()
		}
		entry := jsonObject{"name": name, "verdict": verdict(status)}
		if refused := e.eachAlone(node); triedNames.Has(name) && len(refused) > 0 {
			entry["perPlugin"] = refused
		}
		amounts(node, entry)
		if s, found := scoresOf[name]; found {
			entry["scores"], entry["total"] = s.each, s.total
		}
		answer = append(answer, entry)
	}
	return answer
}

func (e *evaluation) eachAlone(node fwk.NodeInfo) jsonObject {
	refused := jsonObject{}
	for _, plugin := range e.framework.ListPlugins().Filter.Enabled {
		if e.state.GetSkipFilterPlugins().Has(plugin.Name) {
			continue
		}
		if status := e.plugins[plugin.Name].(fwk.FilterPlugin).Filter(e.ctx, e.state, e.pod, node); !status.IsSuccess() {
			refused[plugin.Name] = verdict(status)
		}
	}
	return refused
}

func names(nodes []fwk.NodeInfo) []string {
	var all []string
	for _, node := range nodes {
		all = append(all, node.Node().Name)
	}
	return all
}

func verdict(status *fwk.Status) jsonObject {
	answer := jsonObject{"code": status.Code().String(), "unresolvable": status.Code() == fwk.UnschedulableAndUnresolvable}
	if status == nil { // success
		return answer
	}
	if status.Plugin() != "" {
		answer["plugin"] = status.Plugin()
	}
	if len(status.Reasons()) > 0 {
		answer["reasons"] = status.Reasons()
	}
	return answer
}

func amounts(node fwk.NodeInfo, entry jsonObject) {
	of := func(r fwk.Resource, pods int) jsonObject {
		amounts := jsonObject{"milliCPU": r.GetMilliCPU(), "memory": r.GetMemory(), "ephemeralStorage": r.GetEphemeralStorage(), "pods": pods}
		if len(r.GetScalarResources()) > 0 {
			amounts["scalar"] = r.GetScalarResources()
		}
		return amounts
	}
	entry["allocatable"] = of(node.GetAllocatable(), node.GetAllocatable().GetAllowedPodNumber())
	entry["requested"] = of(node.GetRequested(), len(node.GetPods()))
	entry["nonZeroRequested"] = of(node.GetNonZeroRequested(), len(node.GetPods()))
}
