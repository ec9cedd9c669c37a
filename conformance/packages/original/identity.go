package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-containerregistry/pkg/name"
	conregv1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/test"
	"github.com/crossplane/crossplane-runtime/v2/pkg/xpkg"

	"github.com/crossplane/crossplane/apis/v2/pkg/v1beta1"
)

// answerConstraint says whether a constraint of a dependency allows a version.
func answerConstraint(q question) string {
	if digest, err := conregv1.NewHash(q.Constraint); err == nil {
		return fmt.Sprint(digest.String() == q.Version)
	}
	constraint, err := semver.NewConstraint(q.Constraint)
	if err != nil {
		return "constraint: " + err.Error()
	}
	version, err := semver.NewVersion(q.Version)
	if err != nil {
		return "version: " + err.Error()
	}
	return fmt.Sprint(constraint.Check(version))
}

func answerName(q question) string {
	if q.Hash != nil {
		return xpkg.FriendlyID(q.Text, *q.Hash)
	}
	return xpkg.ToDNSLabel(q.Text)
}

// answerReference reads an image as packages do, or the source of a dependency as the resolver does.
func answerReference(q question) string {
	if q.Dependency {
		ref, err := name.ParseReference(q.Text)
		if err != nil {
			return "invalid"
		}
		return canonical(map[string]string{
			"name": xpkg.ToDNSLabel(ref.Context().RepositoryStr()), "package": ref.String() + ":v1.0.0"})
	}
	ref, err := name.ParseReference(q.Text, name.StrictValidation)
	if err != nil {
		return "invalid"
	}
	return canonical(map[string]string{"source": xpkg.ParsePackageSourceFromReference(ref), "version": ref.Identifier()})
}

// answerImage asks the store of ImageConfigs what the package client and the runtime controller ask it, in their order.
func answerImage(q question) string {
	kube := &test.MockClient{MockList: func(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
		into.(*v1beta1.ImageConfigList).Items = q.Configs
		return nil
	}}
	store, ctx := xpkg.NewImageConfigStore(kube, "crossplane-system"), context.Background()
	rewrite, resolved, err := store.RewritePath(ctx, q.Image)
	if err != nil {
		return problem(err)
	}
	if resolved == "" {
		resolved = q.Image
	}
	if _, err := name.ParseReference(resolved); err != nil {
		return "error: cannot parse"
	}
	authentication, secret, err := store.PullSecretFor(ctx, resolved)
	if err != nil {
		return problem(err)
	}
	verification, rules, err := store.ImageVerificationConfigFor(ctx, resolved)
	if err != nil {
		return problem(err)
	}
	runtime, config, err := store.RuntimeConfigFor(ctx, resolved)
	if err != nil {
		return problem(err)
	}
	authorities := []string{}
	if rules != nil {
		for _, authority := range rules.Cosign.Authorities {
			authorities = append(authorities, authority.Name)
		}
	}
	runtimeConfig := ""
	if config != nil && config.ConfigReference != nil {
		runtimeConfig = config.ConfigReference.Name
	}
	return canonical(map[string]any{
		"resolved": resolved, "rewrite": rewrite, "secret": secret, "authentication": authentication,
		"authorities": authorities, "verification": verification, "runtime": runtime, "runtimeConfig": runtimeConfig})
}

func problem(err error) string {
	parts := strings.Split(err.Error(), ": ")
	return "error: " + parts[len(parts)-1]
}
