// Command upstream asks kube-apiserver's own code what it would make of sample objects: how it defaults
// them, what it refuses, and what it prints. Run it from this folder:
//
//	go run . ../../../crates/kinds/src/testdata
//
// It reads samples.json there and writes served.jsonl.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	core "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	apivalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
)

type strategy interface {
	Validate(ctx context.Context, obj runtime.Object) field.ErrorList
	ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList
}

// services is the Service strategy without the registry that allocates addresses.
type services struct{}

func (services) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return apivalidation.ValidateServiceCreate(obj.(*core.Service))
}

func (services) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return apivalidation.ValidateServiceUpdate(obj.(*core.Service), old.(*core.Service))
}

var strategies = map[string]strategy{
	"Service":                        services{},
	"Namespace":                      namespace.Strategy,
	"Secret":                         secret.Strategy,
	"ConfigMap":                      configmap.Strategy,
	"Event":                          event.Strategy,
	"ServiceAccount":                 serviceaccount.Strategy,
	"Deployment":                     deployment.Strategy,
	"Lease":                          lease.Strategy,
	"DaemonSet":                      daemonset.Strategy,
	"StatefulSet":                    statefulset.Strategy,
	"HorizontalPodAutoscaler":        horizontalpodautoscaler.Strategy,
	"CertificateSigningRequest":      certificates.Strategy,
	"CronJob":                        cronjob.Strategy,
	"LimitRange":                     limitrange.Strategy,
	"PersistentVolume":               persistentvolume.Strategy,
	"PersistentVolumeClaim":          persistentvolumeclaim.Strategy,
	"ReplicationController":          replicationcontroller.Strategy,
	"ResourceQuota":                  resourcequota.Strategy,
	"EndpointSlice":                  endpointslice.Strategy,
	"Ingress":                        ingress.Strategy,
	"NetworkPolicy":                  networkpolicy.Strategy,
	"PodDisruptionBudget":            poddisruptionbudget.Strategy,
	"PriorityClass":                  priorityclass.Strategy,
	"StorageClass":                   storageclass.Strategy,
	"Role":                           role.Strategy,
	"ClusterRole":                    clusterrole.Strategy,
	"RoleBinding":                    rolebinding.Strategy,
	"ClusterRoleBinding":             clusterrolebinding.Strategy,
	"ValidatingWebhookConfiguration": validatingwebhookconfiguration.Strategy,
	"MutatingWebhookConfiguration":   mutatingwebhookconfiguration.Strategy,
}

// sample is one object, and its predecessor if it is an update.
type sample struct {
	Object json.RawMessage `json:"object"`
	Old    json.RawMessage `json:"old,omitempty"`
}

type served struct {
	sample
	Now     int64           `json:"now"`
	Default json.RawMessage `json:"default"`
	Errors  []string        `json:"errors"`
	Columns []column        `json:"columns,omitempty"`
	Cells   []any           `json:"cells,omitempty"`
}

type column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Format   string `json:"format"`
	Priority int32  `json:"priority"`
}

func decode(raw []byte) (runtime.Object, *schema.GroupVersionKind) {
	obj, gvk, err := legacyscheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		log.Fatalf("%s: %v", raw, err)
	}
	legacyscheme.Scheme.Default(obj)
	return obj, gvk
}

func internal(obj runtime.Object, gvk *schema.GroupVersionKind) runtime.Object {
	out, err := legacyscheme.Scheme.ConvertToVersion(obj, schema.GroupVersion{Group: gvk.Group, Version: runtime.APIVersionInternal})
	if err != nil {
		log.Fatal(err)
	}
	return out
}

func serve(s sample, tables printers.TableGenerator) served {
	out := served{sample: s, Now: time.Now().Unix(), Errors: []string{}}
	obj, gvk := decode(s.Object)
	out.Default = marshal(obj)
	in := internal(obj, gvk)
	ctx := genericapirequest.WithNamespace(context.Background(), "default")
	ctx = genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{IsResourceRequest: true, APIGroup: gvk.Group, APIVersion: gvk.Version, Verb: "create"})
	if st, ok := strategies[gvk.Kind]; ok {
		var errs field.ErrorList
		if s.Old == nil {
			errs = st.Validate(ctx, in)
		} else {
			old, oldKind := decode(s.Old)
			errs = st.ValidateUpdate(ctx, in, internal(old, oldKind))
		}
		for _, e := range errs {
			out.Errors = append(out.Errors, e.Error())
		}
	}
	if table, err := tables.GenerateTable(in, printers.GenerateOptions{Wide: true}); err == nil {
		out.Cells = table.Rows[0].Cells
		for _, c := range table.ColumnDefinitions {
			out.Columns = append(out.Columns, column{c.Name, c.Type, c.Format, c.Priority})
		}
	}
	return out
}

func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		log.Fatal(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: upstream FOLDER")
	}
	raw, err := os.ReadFile(filepath.Join(os.Args[1], "samples.json"))
	if err != nil {
		log.Fatal(err)
	}
	var samples []sample
	if err := json.Unmarshal(raw, &samples); err != nil {
		log.Fatal(err)
	}
	tables := printers.NewTableGenerator().With(printersinternal.AddHandlers)
	var b bytes.Buffer
	for _, s := range samples {
		b.Write(marshal(serve(s, tables)))
		b.WriteByte('\n')
	}
	if err := os.WriteFile(filepath.Join(os.Args[1], "served.jsonl"), b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
