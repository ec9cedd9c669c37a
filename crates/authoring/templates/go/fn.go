package main

import (
	"context"
	"fmt"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/request"
	"github.com/crossplane/function-sdk-go/resource"
	"github.com/crossplane/function-sdk-go/resource/composed"
	"github.com/crossplane/function-sdk-go/response"

	"example.org/@NAME@/input/v1beta1"
)

// greeting is the name of the ConfigMap in the pipeline.
const greeting resource.Name = "greeting"

// Function composes a ConfigMap with a greeting.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	log logging.Logger
}

// RunFunction answers one call. What is wrong with the request is a fatal result, which users see.
func (f *Function) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	f.log.Debug("called", "tag", req.GetMeta().GetTag())
	rsp := response.To(req, response.DefaultTTL)
	if err := f.compose(req, rsp); err != nil {
		response.Fatal(rsp, err)
	}
	return rsp, nil
}

func (f *Function) compose(req *fnv1.RunFunctionRequest, rsp *fnv1.RunFunctionResponse) error {
	in := &v1beta1.Input{}
	if err := request.GetInput(req, in); err != nil {
		return fmt.Errorf("cannot read the input: %w", err)
	}
	if in.Message == "" {
		return fmt.Errorf("the input has no message")
	}
	xr, err := request.GetObservedCompositeResource(req)
	if err != nil {
		return fmt.Errorf("cannot read the composite resource: %w", err)
	}
	observed, err := request.GetObservedComposedResources(req)
	if err != nil {
		return fmt.Errorf("cannot read the composed resources: %w", err)
	}
	desired, err := request.GetDesiredComposedResources(req)
	if err != nil {
		return fmt.Errorf("cannot read the desired resources: %w", err)
	}

	configMap := composed.New()
	configMap.SetAPIVersion("v1")
	configMap.SetKind("ConfigMap")
	if err := configMap.SetString("data.message", in.Message+", "+xr.Resource.GetName()); err != nil {
		return err
	}
	// A ConfigMap is ready as soon as it exists.
	ready := resource.ReadyFalse
	if _, exists := observed[greeting]; exists {
		ready = resource.ReadyTrue
	}
	desired[greeting] = &resource.DesiredComposed{Resource: configMap, Ready: ready}
	return response.SetDesiredComposedResources(rsp, desired)
}
