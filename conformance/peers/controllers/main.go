// The controllers of kube-controller-manager that belong to an API server without nodes: garbage
// collection, namespace deletion, default service accounts, the root CA ConfigMap and ClusterRole
// aggregation. They are run unchanged, only with a shorter discovery period than the usual 30 s, so
// that comparisons with kinds born a moment ago need not wait for it.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"

	v1 "k8s.io/api/core/v1"
)

const (
	resync          = 10 * time.Minute
	discoveryPeriod = time.Second
	workers         = 4
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	config.QPS, config.Burst = 500, 1000
	if err := run(ctx, config); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "controllers"))
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(client, resync)
	metaShared := metadatainformer.NewSharedInformerFactory(meta, resync)
	started := make(chan struct{})

	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, meta, mapper, garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(shared, metaShared), started)
	if err != nil {
		return err
	}
	namespaces := namespace.NewNamespaceController(ctx, client, meta, client.Discovery().ServerPreferredNamespacedResources,
		shared.Core().V1().Namespaces(), resync, v1.FinalizerKubernetes)
	accounts, err := serviceaccount.NewServiceAccountsController(klog.FromContext(ctx), shared.Core().V1().ServiceAccounts(),
		shared.Core().V1().Namespaces(), client, serviceaccount.DefaultServiceAccountsControllerOptions())
	if err != nil {
		return err
	}
	publisher, err := rootcacertpublisher.NewPublisher(shared.Core().V1().ConfigMaps(), shared.Core().V1().Namespaces(), client, config.CAData)
	if err != nil {
		return err
	}
	aggregation := clusterroleaggregation.NewClusterRoleAggregation(shared.Rbac().V1().ClusterRoles(), client.RbacV1())

	shared.Start(ctx.Done())
	metaShared.Start(ctx.Done())
	close(started)
	go collector.Run(ctx, workers, discoveryPeriod)
	go collector.Sync(ctx, discovery.NewDiscoveryClient(client.RESTClient()), discoveryPeriod)
	go namespaces.Run(ctx, workers)
	go accounts.Run(ctx, workers)
	go publisher.Run(ctx, workers)
	go aggregation.Run(ctx, workers)
	<-ctx.Done()
	return nil
}
