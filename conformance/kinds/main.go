// Command kinds describes the built-in Kubernetes types that Transom serves as one table of data,
// and proves the table: it also writes what the Go encoders do with sample objects.
//
// Run it from this folder:
//
//	go run . ../../crates/kinds/src
//
// It writes types.json (shapes), docs.json (descriptions) and testdata/*.json (fixtures) there.
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"sort"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// served lists the kinds by group version. A "…List" kind joins each of them when upstream has one.
var served = []struct {
	gv    schema.GroupVersion
	add   func(*runtime.Scheme) error
	kinds []string
}{
	{corev1.SchemeGroupVersion, corev1.AddToScheme, []string{
		"Namespace", "Secret", "ConfigMap", "Event", "ServiceAccount", "Service", "Pod", "PodTemplate", "Endpoints",
		"LimitRange", "Node", "PersistentVolume", "PersistentVolumeClaim", "ReplicationController", "ResourceQuota",
		"Binding"}},
	{appsv1.SchemeGroupVersion, appsv1.AddToScheme, []string{
		"ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}},
	{batchv1.SchemeGroupVersion, batchv1.AddToScheme, []string{"CronJob", "Job"}},
	{networkingv1.SchemeGroupVersion, networkingv1.AddToScheme, []string{
		"Ingress", "IngressClass", "IPAddress", "NetworkPolicy", "ServiceCIDR"}},
	{policyv1.SchemeGroupVersion, policyv1.AddToScheme, []string{"Eviction", "PodDisruptionBudget"}},
	{storagev1.SchemeGroupVersion, storagev1.AddToScheme, []string{
		"CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"}},
	{schedulingv1.SchemeGroupVersion, schedulingv1.AddToScheme, []string{"PriorityClass"}},
	{nodev1.SchemeGroupVersion, nodev1.AddToScheme, []string{"RuntimeClass"}},
	{discoveryv1.SchemeGroupVersion, discoveryv1.AddToScheme, []string{"EndpointSlice"}},
	{certificatesv1.SchemeGroupVersion, certificatesv1.AddToScheme, []string{"CertificateSigningRequest"}},
	{resourcev1.SchemeGroupVersion, resourcev1.AddToScheme, []string{
		"DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"}},
	{flowcontrolv1.SchemeGroupVersion, flowcontrolv1.AddToScheme, []string{
		"FlowSchema", "PriorityLevelConfiguration"}},
	{autoscalingv2.SchemeGroupVersion, autoscalingv2.AddToScheme, []string{"HorizontalPodAutoscaler"}},
	{eventsv1.SchemeGroupVersion, eventsv1.AddToScheme, []string{"Event"}},
	{coordinationv1.SchemeGroupVersion, coordinationv1.AddToScheme, []string{"Lease"}},
	{rbacv1.SchemeGroupVersion, rbacv1.AddToScheme, []string{
		"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}},
	{authorizationv1.SchemeGroupVersion, authorizationv1.AddToScheme, []string{
		"SubjectAccessReview", "SelfSubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectRulesReview"}},
	{authenticationv1.SchemeGroupVersion, authenticationv1.AddToScheme, []string{
		"TokenReview", "SelfSubjectReview", "TokenRequest"}},
	{apiextensionsv1.SchemeGroupVersion, apiextensionsv1.AddToScheme, []string{"CustomResourceDefinition"}},
	{admissionregistrationv1.SchemeGroupVersion, admissionregistrationv1.AddToScheme, []string{
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}},
	{autoscalingv1.SchemeGroupVersion, autoscalingv1.AddToScheme, []string{"HorizontalPodAutoscaler", "Scale"}},
}

// metaTypes are the types that belong to no group: options, lists of APIs, Status, Table.
var metaTypes = map[string]any{
	"APIGroup":                  metav1.APIGroup{},
	"APIGroupList":              metav1.APIGroupList{},
	"APIResourceList":           metav1.APIResourceList{},
	"APIVersions":               metav1.APIVersions{},
	"CreateOptions":             metav1.CreateOptions{},
	"DeleteOptions":             metav1.DeleteOptions{},
	"GetOptions":                metav1.GetOptions{},
	"ListOptions":               metav1.ListOptions{},
	"PatchOptions":              metav1.PatchOptions{},
	"UpdateOptions":             metav1.UpdateOptions{},
	"Status":                    metav1.Status{},
	"WatchEvent":                metav1.WatchEvent{},
	"Table":                     metav1.Table{},
	"TableOptions":              metav1.TableOptions{},
	"PartialObjectMetadata":     metav1.PartialObjectMetadata{},
	"PartialObjectMetadataList": metav1.PartialObjectMetadataList{},
	"List":                      metav1.List{},
}

// root is one kind and the Go type behind it.
type root struct {
	Group   string `json:"g,omitempty"`
	Version string `json:"v"`
	Kind    string `json:"k"`
	Type    string `json:"t"`
	goType  reflect.Type
}

func roots() []root {
	var out []root
	for _, s := range served {
		scheme := runtime.NewScheme()
		if err := s.add(scheme); err != nil {
			log.Fatal(err)
		}
		known := scheme.KnownTypes(s.gv)
		for _, kind := range s.kinds {
			for _, k := range []string{kind, kind + "List"} {
				if t, ok := known[k]; ok {
					out = append(out, root{s.gv.Group, s.gv.Version, k, typeName(t), t})
				}
			}
		}
	}
	for kind, v := range metaTypes {
		t := reflect.TypeOf(v)
		out = append(out, root{"meta.k8s.io", "v1", kind, typeName(t), t})
	}
	d := reflect.TypeOf(apidiscoveryv2.APIGroupDiscoveryList{})
	out = append(out, root{"apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList", typeName(d), d})
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		return a.Group+"/"+a.Kind+"/"+a.Version < b.Group+"/"+b.Kind+"/"+b.Version
	})
	return out
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: kinds FOLDER")
	}
	out := os.Args[1]
	rs := roots()
	t := newTable()
	for _, r := range rs {
		t.add(r.goType)
	}
	t.Kinds = rs
	write(filepath.Join(out, "types.json"), t)
	write(filepath.Join(out, "docs.json"), t.docs)
	if err := os.MkdirAll(filepath.Join(out, "testdata"), 0o755); err != nil {
		log.Fatal(err)
	}
	writeLines(filepath.Join(out, "testdata", "protobuf.jsonl"), protobufFixtures(rs))
	writeLines(filepath.Join(out, "testdata", "roundtrip.jsonl"), roundTripFixtures(rs))
	writeLines(filepath.Join(out, "testdata", "scalars.jsonl"), scalarFixtures())
}

func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		log.Fatal(err)
	}
	return b.Bytes()
}

func write(path string, v any) {
	if err := os.WriteFile(path, marshal(v), 0o644); err != nil {
		log.Fatal(err)
	}
}

func writeLines[T any](path string, vs []T) {
	var b bytes.Buffer
	for _, v := range vs {
		b.Write(marshal(v))
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
