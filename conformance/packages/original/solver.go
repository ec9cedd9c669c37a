package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/feature"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"

	pkgmetav1 "github.com/crossplane/crossplane/apis/v2/pkg/meta/v1"
	v1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"

	"github.com/crossplane/crossplane/v2/internal/controller/pkg/resolver"
	"github.com/crossplane/crossplane/v2/internal/controller/pkg/revision"
	"github.com/crossplane/crossplane/v2/internal/dag"
	"github.com/crossplane/crossplane/v2/internal/features"
)

// A world is the API server and the registry of one question.
type world struct {
	lock    v1beta1.Lock
	objects []object
	tags    map[string][]string
	// What the resolver did in its last run.
	did string
	// Whom it did it to.
	touched *object
}

// steps is more than any of the graphs needs.
const steps = 60

// answerSolver runs the controller of the Lock once.
func answerSolver(q question) string {
	w := &world{objects: slices.Clone(q.Objects), tags: q.Tags}
	w.lock.Packages = q.Lock
	return w.step(q.Mode)
}

// answerInstall runs it until it changes nothing; each package that it installs joins the Lock.
func answerInstall(q question) string {
	w := &world{objects: slices.Clone(q.Objects), tags: q.Tags}
	w.lock.Packages = slices.Clone(q.Lock)
	outcome := ""
	for range steps {
		outcome = w.step(q.Mode)
		if w.touched == nil {
			break
		}
		w.join(q.Universe)
	}
	failures := []string{}
	if outcome != "resolved" && !strings.HasPrefix(outcome, "keep ") {
		failures = append(failures, outcome)
	}
	packages := make([]string, len(w.objects))
	for i, o := range w.objects {
		packages[i] = fmt.Sprintf("%s %s %s", o.Kind, o.Name, o.Package)
	}
	sort.Strings(packages)
	return canonical(map[string]any{"packages": packages, "failures": failures})
}

// join puts the package that was written last into the Lock, with the dependencies that its version has.
func (w *world) join(universe map[string][]v1beta1.Dependency) {
	ref, err := name.ParseReference(w.touched.Package)
	if err != nil {
		return
	}
	entry := v1beta1.LockPackage{
		APIVersion: &w.touched.APIVersion, Kind: &w.touched.Kind, Name: w.touched.Name + "-1",
		Source: xpkg.ParsePackageSourceFromReference(ref), Version: ref.Identifier(), Dependencies: universe[w.touched.Package]}
	for i := range w.lock.Packages {
		if w.lock.Packages[i].Source == entry.Source {
			w.lock.Packages[i] = entry
			return
		}
	}
	w.lock.Packages = append(w.lock.Packages, entry)
}

func (w *world) step(mode string) string {
	w.did, w.touched = "", nil
	flags := &feature.Flags{}
	options := []resolver.ReconcilerOption{resolver.WithClient(w), resolver.WithFeatures(flags), resolver.WithLogger(logging.NewNopLogger()),
		resolver.WithFinalizer(resource.FinalizerFns{
			AddFinalizerFn:    func(context.Context, resource.Object) error { return nil },
			RemoveFinalizerFn: func(context.Context, resource.Object) error { return nil }})}
	if mode != "default" {
		flags.Enable(features.EnableAlphaDependencyVersionUpgrades)
		options = append(options, resolver.WithNewDagFn(dag.NewUpgradingMapDag))
	}
	if mode == "downgrade" {
		options = append(options, resolver.WithDowngradesEnabled())
	}
	reconciler := resolver.NewReconciler(&fake.Manager{Client: w.client()}, options...)
	_, err := reconciler.Reconcile(context.Background(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "lock"}})
	resolved := w.lock.Status.GetCondition(v1beta1.TypeResolved)
	switch {
	case err != nil:
		return outcome(err.Error())
	case resolved.Status == "False":
		return outcome(resolved.Message)
	case w.did != "":
		return w.did
	}
	return "resolved"
}

// client answers from the world, and records writes.
func (w *world) client() client.Client {
	return &test.MockClient{
		MockGet: func(_ context.Context, _ client.ObjectKey, into client.Object) error {
			w.lock.DeepCopyInto(into.(*v1beta1.Lock))
			return nil
		},
		MockList: func(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
			list := into.(*unstructured.UnstructuredList)
			for _, o := range w.objects {
				if list.GetKind() == o.Kind+"List" {
					list.Items = append(list.Items, o.unstructured())
				}
			}
			return nil
		},
		MockCreate: func(_ context.Context, made client.Object, _ ...client.CreateOption) error {
			o := read(made)
			if slices.ContainsFunc(w.objects, func(other object) bool { return other.Kind == o.Kind && other.Name == o.Name }) {
				w.did = fmt.Sprintf("exists %s %s", o.Kind, o.Name)
				return kerrors.NewAlreadyExists(schema.GroupResource{}, o.Name)
			}
			w.did = fmt.Sprintf("create %s %s %s", o.Kind, o.Name, o.Package)
			w.objects = append(w.objects, o)
			w.touched = &o
			return nil
		},
		MockUpdate: func(_ context.Context, made client.Object, _ ...client.UpdateOption) error {
			o := read(made)
			for i := range w.objects {
				if w.objects[i].Kind != o.Kind || w.objects[i].Name != o.Name {
					continue
				}
				if w.objects[i].Package == o.Package {
					ref, _ := name.ParseReference(o.Package)
					w.did = "keep " + xpkg.ParsePackageSourceFromReference(ref)
					continue
				}
				w.did = fmt.Sprintf("update %s %s %s", o.Kind, o.Name, o.Package)
				w.objects[i] = o
				w.touched = &w.objects[i]
			}
			return nil
		},
		MockStatusUpdate: func(_ context.Context, made client.Object, _ ...client.SubResourceUpdateOption) error {
			w.lock.Status = made.(*v1beta1.Lock).Status
			return nil
		},
	}
}

func (o object) unstructured() unstructured.Unstructured {
	made := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"package": o.Package}}}
	if o.Resolved != "" {
		made.Object["status"] = map[string]any{"resolvedPackage": o.Resolved}
	}
	made.SetAPIVersion(o.APIVersion)
	made.SetKind(o.Kind)
	made.SetName(o.Name)
	return made
}

func read(from client.Object) object {
	made := from.(*unstructured.Unstructured)
	source, _, _ := unstructured.NestedString(made.Object, "spec", "package")
	resolved, _, _ := unstructured.NestedString(made.Object, "status", "resolvedPackage")
	return object{APIVersion: made.GetAPIVersion(), Kind: made.GetKind(), Name: made.GetName(), Package: source, Resolved: resolved}
}

// Get is not asked for by the resolver.
func (w *world) Get(context.Context, string, ...xpkg.GetOption) (*xpkg.Package, error) {
	return nil, fmt.Errorf("not asked for")
}

// ListVersions answers as the real client does.
func (w *world) ListVersions(_ context.Context, source string, _ ...xpkg.GetOption) ([]string, error) {
	return xpkg.FilterAndSortVersions(w.tags[source]), nil
}

var outcomes = []struct{ pattern, outcome string }{
	{`cannot build DAG: node (\S+) already exists`, "duplicate $1"},
	{`cannot sort DAG: detected cycle on: (\S+)`, "cycle $1"},
	{`dependency \((\S+)\) does not have a valid version`, "none $1"},
	{`different types of parent constraints`, "mixed"},
	{`different digests in parent constraints`, "digests"},
	{`version constraint on dependency is invalid`, "invalid constraint"},
}

// outcome is what an error comes down to.
func outcome(message string) string {
	for _, known := range outcomes {
		pattern := regexp.MustCompile("(?s).*" + known.pattern + ".*")
		if pattern.MatchString(message) {
			return pattern.ReplaceAllString(message, known.outcome)
		}
	}
	return "failed: " + message
}

// answerResolution resolves the dependencies of a revision that is in the Lock.
func answerResolution(q question) string {
	lock := v1beta1.Lock{Packages: q.Lock}
	kube := &test.MockClient{
		MockGet: func(_ context.Context, _ client.ObjectKey, into client.Object) error {
			lock.DeepCopyInto(into.(*v1beta1.Lock))
			return nil
		},
		MockUpdate: test.NewMockUpdateFn(nil),
	}
	of := q.Lock[q.Of]
	separator := ":"
	if strings.HasPrefix(of.Version, "sha256:") {
		separator = "@"
	}
	pr := &v1.ConfigurationRevision{}
	pr.SetName(of.Name)
	pr.SetSource(of.Source + separator + of.Version)
	pr.SetDesiredState(v1.PackageRevisionActive)
	meta := &pkgmetav1.Configuration{}
	for _, dependency := range of.Dependencies {
		wanted := pkgmetav1.Dependency{APIVersion: dependency.APIVersion, Kind: dependency.Kind, Version: dependency.Constraints}
		switch {
		case dependency.APIVersion != nil:
			wanted.Package = &dependency.Package
		case *dependency.Type == v1beta1.ConfigurationPackageType:
			wanted.Configuration = &dependency.Package
		case *dependency.Type == v1beta1.ProviderPackageType:
			wanted.Provider = &dependency.Package
		default:
			wanted.Function = &dependency.Package
		}
		meta.Spec.DependsOn = append(meta.Spec.DependsOn, wanted)
	}
	kind := schema.FromAPIVersionAndKind(*of.APIVersion, *of.Kind)
	manager := revision.NewPackageDependencyManager(kube, dag.NewMapDag, kind, logging.NewNopLogger())
	found, installed, invalid, err := manager.Resolve(context.Background(), meta, pr)
	text := ""
	if err != nil {
		text = err.Error()
	}
	return canonical(map[string]any{"found": found, "installed": installed, "invalid": invalid, "problem": text})
}

