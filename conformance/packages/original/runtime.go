package main

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	v1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"
	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"
	pkgruntime "github.com/crossplane/crossplane/v2/internal/controller/pkg/runtime"
)

// answerRuntime has the objects that the original applies for a revision: its hooks run against a client that has nothing and
// keeps what it is given. They fail afterwards, because nothing makes certificates or Deployments available.
func answerRuntime(q question) string {
	applied := map[string]any{}
	recording := &test.MockClient{
		MockGet: func(_ context.Context, key client.ObjectKey, _ client.Object) error {
			return kerrors.NewNotFound(schema.GroupResource{}, key.Name)
		},
		MockCreate: func(_ context.Context, object client.Object, _ ...client.CreateOption) error {
			switch object.(type) {
			case *corev1.Secret:
			case *corev1.Service:
				applied["Service"] = plain(object, "v1", "Service")
			case *corev1.ServiceAccount:
				applied["ServiceAccount"] = plain(object, "v1", "ServiceAccount")
			default:
				applied["Deployment"] = plain(object, "apps/v1", "Deployment")
			}
			return nil
		},
	}
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(q.Revision, &kind); err != nil {
		return err.Error()
	}
	var revision v1.PackageRevisionWithRuntime = &v1.ProviderRevision{}
	var hooks pkgruntime.Hooks = pkgruntime.NewProviderHooks(recording)
	if kind.Kind == "FunctionRevision" {
		revision, hooks = &v1.FunctionRevision{}, pkgruntime.NewFunctionHooks(recording)
	}
	if err := json.Unmarshal(q.Revision, revision); err != nil {
		return err.Error()
	}
	config := &v1beta1.DeploymentRuntimeConfig{Spec: q.RuntimeConfig}
	secrets := []corev1.LocalObjectReference{}
	for _, name := range q.AccountSecrets {
		secrets = append(secrets, corev1.LocalObjectReference{Name: name})
	}
	options := []pkgruntime.BuilderOption{pkgruntime.BuilderWithRuntimeConfig(config), pkgruntime.BuilderWithServiceAccountPullSecrets(secrets)}
	if q.PullSecret != "" {
		options = append(options, pkgruntime.BuilderWithPullSecrets(q.PullSecret))
	}
	builder := pkgruntime.NewDeploymentRuntimeBuilder(revision, "crossplane-system", options...)
	_ = hooks.Pre(context.Background(), revision, builder)
	_ = hooks.Post(context.Background(), revision, builder)
	return canonical(prune(applied))
}

// plain is an object as JSON has it, with its type.
func plain(object client.Object, apiVersion, kind string) any {
	text, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	var read map[string]any
	if err := json.Unmarshal(text, &read); err != nil {
		return err.Error()
	}
	read["apiVersion"], read["kind"] = apiVersion, kind
	delete(read, "status")
	return prune(read)
}

// prune removes what is null or empty.
func prune(value any) any {
	switch value := value.(type) {
	case map[string]any:
		pruned := map[string]any{}
		for key, inner := range value {
			inner = prune(inner)
			switch inner := inner.(type) {
			case nil:
				continue
			case map[string]any:
				if len(inner) == 0 {
					continue
				}
			case []any:
				if len(inner) == 0 {
					continue
				}
			}
			pruned[key] = inner
		}
		return pruned
	case []any:
		for i := range value {
			value[i] = prune(value[i])
		}
		return value
	}
	return value
}
