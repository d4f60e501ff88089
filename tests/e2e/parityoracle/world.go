// A scenario as the scheduler's own cache, snapshot, queue and framework hold it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

type scenario struct {
	Name                   string                          `json:"name"`
	Nodes                  []*v1.Node                      `json:"nodes"`
	Pods                   []*v1.Pod                       `json:"pods"`
	Pending                *v1.Pod                         `json:"pending"`
	Nominated              []*v1.Pod                       `json:"nominated"`
	PDBs                   []*policyv1.PodDisruptionBudget `json:"pdbs"`
	Namespaces             []*v1.Namespace                 `json:"namespaces"`
	Services               []*v1.Service                   `json:"services"`
	ReplicationControllers []*v1.ReplicationController     `json:"replicationControllers"`
	ReplicaSets            []*appsv1.ReplicaSet            `json:"replicaSets"`
	StatefulSets           []*appsv1.StatefulSet           `json:"statefulSets"`
	PersistentVolumes      []*v1.PersistentVolume          `json:"persistentVolumes"`
	PersistentVolumeClaims []*v1.PersistentVolumeClaim     `json:"persistentVolumeClaims"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes"`
	CSIDrivers             []*storagev1.CSIDriver          `json:"csiDrivers"`
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity `json:"csiStorageCapacities"`
	Config                 json.RawMessage                 `json:"config"`
	ExtenderFailed         map[string]string               `json:"extenderFailed"`
	ExtenderUnresolvable   map[string]string               `json:"extenderUnresolvable"`
}

type world struct {
	scenario   *scenario
	framework  framework.Framework
	snapshot   *schedulercache.Snapshot
	plugins    map[string]fwk.Plugin
	preemption *defaultpreemption.DefaultPreemption
	pdbs       []*policyv1.PodDisruptionBudget
}

func newWorld(ctx context.Context, s *scenario) (*world, error) {
	logger := klog.FromContext(ctx)
	profile, err := profileOf(s)
	if err != nil {
		return nil, err
	}
	w := &world{scenario: s, snapshot: schedulercache.NewEmptySnapshot(), plugins: map[string]fwk.Plugin{}, pdbs: s.PDBs}
	known := schedulercache.New(ctx, nil, false)
	for _, node := range s.Nodes {
		known.AddNode(logger, node)
	}
	for _, pod := range s.Pods {
		if err := known.AddPod(logger, pod); err != nil {
			return nil, err
		}
	}
	if err := known.UpdateSnapshot(logger, w.snapshot); err != nil {
		return nil, err
	}
	client := fake.NewSimpleClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	if err := w.fill(factory); err != nil {
		return nil, err
	}
	dra, err := draManager(ctx, client, factory)
	if err != nil {
		return nil, err
	}
	w.framework, err = frameworkruntime.NewFramework(ctx, w.registry(), profile,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSharedDRAManager(dra),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSnapshotSharedLister(w.snapshot),
		frameworkruntime.WithParallelism(1),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithPodGroupManager(known),
	)
	if err != nil {
		return nil, err
	}
	waiting := queue.NewSchedulingQueue(w.framework.QueueSortFunc(), factory,
		queue.WithPodLister(factory.Core().V1().Pods().Lister()))
	for _, pod := range s.Nominated {
		waiting.Add(ctx, pod)
	}
	w.framework.SetPodNominator(waiting)
	w.framework.SetPodActivator(waiting)
	return w, nil
}

func profileOf(s *scenario) (*config.KubeSchedulerProfile, error) {
	given := s.Config
	if len(given) == 0 || string(given) == "null" {
		given = []byte(`{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration"}`)
	}
	decoded, gvk, err := scheme.Codecs.UniversalDecoder().Decode(given, nil, nil)
	if err != nil {
		return nil, err
	}
	cfg := decoded.(*config.KubeSchedulerConfiguration)
	cfg.TypeMeta.APIVersion = gvk.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		return nil, err
	}
	for i := range cfg.Profiles {
		if cfg.Profiles[i].SchedulerName == s.Pending.Spec.SchedulerName {
			return &cfg.Profiles[i], nil
		}
	}
	if len(cfg.Profiles) == 1 {
		return &cfg.Profiles[0], nil
	}
	return nil, fmt.Errorf("no profile of the name %q", s.Pending.Spec.SchedulerName)
}

// What the plugins list, put where their informers would put it.
func (w *world) fill(factory informers.SharedInformerFactory) error {
	factory.InformerFor(&v1.PersistentVolume{}, filled(&v1.PersistentVolume{}))
	factory.InformerFor(&v1.PersistentVolumeClaim{}, filled(&v1.PersistentVolumeClaim{}))
	s, core, apps, storage := w.scenario, factory.Core().V1(), factory.Apps().V1(), factory.Storage().V1()
	for _, err := range []error{
		put(core.Pods().Informer(), append(append(append([]*v1.Pod{}, s.Pods...), s.Nominated...), s.Pending)),
		put(core.Nodes().Informer(), s.Nodes),
		put(core.Namespaces().Informer(), s.Namespaces),
		put(core.Services().Informer(), s.Services),
		put(core.ReplicationControllers().Informer(), s.ReplicationControllers),
		put(apps.ReplicaSets().Informer(), s.ReplicaSets),
		put(apps.StatefulSets().Informer(), s.StatefulSets),
		put(factory.Policy().V1().PodDisruptionBudgets().Informer(), s.PDBs),
		put(core.PersistentVolumes().Informer(), s.PersistentVolumes),
		put(core.PersistentVolumeClaims().Informer(), s.PersistentVolumeClaims),
		put(storage.StorageClasses().Informer(), s.StorageClasses),
		put(storage.CSINodes().Informer(), s.CSINodes),
		put(storage.CSIDrivers().Informer(), s.CSIDrivers),
		put(storage.CSIStorageCapacities().Informer(), s.CSIStorageCapacities),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func put[T runtime.Object](informer cache.SharedIndexInformer, objects []T) error {
	for _, object := range objects {
		if err := informer.GetIndexer().Add(object); err != nil {
			return err
		}
	}
	return nil
}

// An informer that never runs and tells a new handler at once what it holds: assume caches live on handlers.
type filledInformer struct{ cache.SharedIndexInformer }

func (i filledInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, object := range i.GetIndexer().List() {
		handler.OnAdd(object, true)
	}
	return i.SharedIndexInformer.AddEventHandler(handler)
}

func filled(kind runtime.Object) func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
	return func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		return filledInformer{cache.NewSharedIndexInformer(&cache.ListWatch{}, kind, 0, byNamespace)}
	}
}

func draManager(ctx context.Context, client *fake.Clientset, factory informers.SharedInformerFactory) (fwk.SharedDRAManager, error) {
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := tracker.StartTracker(ctx, tracker.Options{SliceInformer: factory.Resource().V1().ResourceSlices(), KubeClient: client})
	if err != nil {
		return nil, err
	}
	return dynamicresources.NewDRAManager(ctx, claims, slices, factory), nil
}

// The in-tree registry, with a look at what it makes. No pod is deleted.
func (w *world) registry() frameworkruntime.Registry {
	watched := frameworkruntime.Registry{}
	for name, factory := range plugins.NewInTreeRegistry() {
		watched[name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := factory(ctx, args, handle)
			w.plugins[name] = plugin
			if preempting, ok := plugin.(*defaultpreemption.DefaultPreemption); ok && err == nil {
				w.preemption = preempting
				preempting.Executor.PreemptPod = func(context.Context, preemption.Candidate, preemption.ExecutorPreemptor, *v1.Pod, string) error {
					return nil
				}
			}
			return plugin, err
		}
	}
	return watched
}
