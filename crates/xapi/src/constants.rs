//! The words of Crossplane that others can see: finalizers, labels, annotations, field owners, condition types and
//! reasons, event reasons.

#![expect(missing_docs, reason = "names and fields are Crossplane's, which its CRDs describe")]

/// The version of Crossplane that the controllers are compatible with: what packages state constraints on.
pub const CROSSPLANE_VERSION: &str = "v2.3.4";

/// API groups.
pub mod group {
    pub const APIEXTENSIONS: &str = "apiextensions.crossplane.io";
    pub const PKG: &str = "pkg.crossplane.io";
    /// Of the object that describes a package, inside the package.
    pub const META_PKG: &str = "meta.pkg.crossplane.io";
    pub const PROTECTION: &str = "protection.crossplane.io";
}

/// `apiVersion` and `kind` of the fixed kinds, in the versions the controllers use.
pub mod kind {
    pub const APIEXTENSIONS_V1: &str = "apiextensions.crossplane.io/v1";
    pub const APIEXTENSIONS_V2: &str = "apiextensions.crossplane.io/v2";
    pub const APIEXTENSIONS_V1ALPHA1: &str = "apiextensions.crossplane.io/v1alpha1";
    pub const PKG_V1: &str = "pkg.crossplane.io/v1";
    pub const PKG_V1BETA1: &str = "pkg.crossplane.io/v1beta1";
    pub const PROTECTION_V1BETA1: &str = "protection.crossplane.io/v1beta1";
    pub const XRD: &str = "CompositeResourceDefinition";
    pub const COMPOSITION: &str = "Composition";
    pub const COMPOSITION_REVISION: &str = "CompositionRevision";
    pub const ENVIRONMENT_CONFIG: &str = "EnvironmentConfig";
    pub const FUNCTION: &str = "Function";
    pub const FUNCTION_REVISION: &str = "FunctionRevision";
    pub const PROVIDER: &str = "Provider";
    pub const PROVIDER_REVISION: &str = "ProviderRevision";
    pub const CONFIGURATION: &str = "Configuration";
    pub const CONFIGURATION_REVISION: &str = "ConfigurationRevision";
    pub const LOCK: &str = "Lock";
    pub const IMAGE_CONFIG: &str = "ImageConfig";
    pub const DEPLOYMENT_RUNTIME_CONFIG: &str = "DeploymentRuntimeConfig";
    pub const MRD: &str = "ManagedResourceDefinition";
    pub const MRAP: &str = "ManagedResourceActivationPolicy";
    pub const USAGE: &str = "Usage";
    pub const CLUSTER_USAGE: &str = "ClusterUsage";
}

pub mod finalizer {
    pub const COMPOSITE: &str = "composite.apiextensions.crossplane.io";
    pub const CLAIM: &str = "finalizer.apiextensions.crossplane.io";
    /// On an XRD while its composite resources are defined.
    pub const DEFINED: &str = "defined.apiextensions.crossplane.io";
    /// On an XRD while its claims are offered.
    pub const OFFERED: &str = "offered.apiextensions.crossplane.io";
    pub const USAGE: &str = "usage.apiextensions.crossplane.io";
    /// On a package revision while it is in the Lock.
    pub const PACKAGE_REVISION: &str = "revision.pkg.crossplane.io";
    /// On the Lock while it has packages.
    pub const LOCK: &str = "lock.pkg.crossplane.io";
}

pub mod label {
    /// The name of the topmost composite resource: the prefix of the names of everything composed below it.
    pub const COMPOSITE: &str = "crossplane.io/composite";
    pub const CLAIM_NAME: &str = "crossplane.io/claim-name";
    pub const CLAIM_NAMESPACE: &str = "crossplane.io/claim-namespace";
    pub const COMPOSITION_NAME: &str = "crossplane.io/composition-name";
    pub const COMPOSITION_HASH: &str = "crossplane.io/composition-hash";
    pub const IN_USE: &str = "crossplane.io/in-use";
    /// The package a package revision belongs to.
    pub const PACKAGE: &str = "pkg.crossplane.io/package";
    /// The package revision a runtime belongs to.
    pub const REVISION: &str = "pkg.crossplane.io/revision";
    /// The Provider a runtime belongs to.
    pub const PROVIDER: &str = "pkg.crossplane.io/provider";
    /// The Function a runtime belongs to.
    pub const FUNCTION: &str = "pkg.crossplane.io/function";
    /// The family of a provider, from the metadata in its package.
    pub const PROVIDER_FAMILY: &str = "pkg.crossplane.io/provider-family";
}

pub mod annotation {
    pub const COMPOSITION_RESOURCE_NAME: &str = "crossplane.io/composition-resource-name";
    pub const EXTERNAL_NAME: &str = "crossplane.io/external-name";
    pub const EXTERNAL_CREATE_PENDING: &str = "crossplane.io/external-create-pending";
    pub const EXTERNAL_CREATE_SUCCEEDED: &str = "crossplane.io/external-create-succeeded";
    pub const EXTERNAL_CREATE_FAILED: &str = "crossplane.io/external-create-failed";
    pub const PAUSED: &str = "crossplane.io/paused";
    pub const POLL_INTERVAL: &str = "crossplane.io/poll-interval";
    pub const RECONCILE_REQUESTED_AT: &str = "crossplane.io/reconcile-requested-at";
    pub const USAGE_DETAILS: &str = "crossplane.io/usage-details";
    pub const DELETION_ATTEMPT: &str = "usage.crossplane.io/deletion-attempt-with-policy";
    /// Ours, on package revisions: the digest of the image. A revision uses this image, even if the tag has moved since.
    pub const IMAGE_DIGEST: &str = "transom.io/image-digest";
    /// Ours, on package revisions: the ImageConfig and authority that the image was verified by, and a hash of all that the
    /// verification depended on. It is not repeated while the hash is the same.
    pub const VERIFIED_BY: &str = "transom.io/verified-by";
    /// Ours, on package revisions: the keys of the labels that were copied from the package, separated by commas. Those that
    /// the package loses are removed.
    pub const COPIED_LABELS: &str = "transom.io/copied-labels";
}

/// The Lease of the leading process. Crossplane and Transom use the same one, so that only one of them controls a cluster.
pub const LEADER_LEASE: &str = "crossplane-leader-election-core";

/// Field owners of server-side apply.
pub mod owner {
    /// References and status of a composite resource.
    pub const COMPOSITE: &str = "apiextensions.crossplane.io/composite";
    /// Composed resources; followed by `/` and a hash of the composite resource.
    pub const COMPOSED_PREFIX: &str = "apiextensions.crossplane.io/composed";
    /// Conditions of a claim about its composite resource.
    pub const CLAIM: &str = "apiextensions.crossplane.io/claim";
    /// The manager of plain updates.
    pub const DEFAULT: &str = "crossplane";
    /// CRDs of managed resources.
    pub const MANAGED: &str = "apiextensions.crossplane.io/managed";
    /// Usages that keep a provider while it has managed resources.
    pub const MANAGED_PROTECTION: &str = "apiextensions.crossplane.io/managed-protection";
    /// Runtimes of packages, since v2.4. Packages, revisions, the Lock and what packages bring are written by plain
    /// updates.
    pub const RUNTIME: &str = "pkg.crossplane.io/runtime";
}

/// The `type` of a connection secret.
pub const CONNECTION_SECRET_TYPE: &str = "connection.crossplane.io/v1alpha1";

/// The name of the only Lock.
pub const LOCK_NAME: &str = "lock";

/// What ImageConfigs are used for, as the status of packages and revisions names it.
pub mod image_config {
    pub const SET_PULL_SECRET: &str = "SetImagePullSecret";
    pub const VERIFY: &str = "VerifyImage";
    pub const REWRITE: &str = "RewriteImage";
    pub const CONFIGURE_RUNTIME: &str = "ConfigureRuntime";
}

/// Types of conditions.
pub mod condition {
    pub const READY: &str = "Ready";
    pub const SYNCED: &str = "Synced";
    pub const HEALTHY: &str = "Healthy";
    pub const UP_TO_DATE: &str = "UpToDate";
    pub const RESPONSIVE: &str = "Responsive";
    pub const ESTABLISHED: &str = "Established";
    pub const OFFERED: &str = "Offered";
    pub const VALID_PIPELINE: &str = "ValidPipeline";
    pub const INSTALLED: &str = "Installed";
    pub const REVISION_HEALTHY: &str = "RevisionHealthy";
    pub const RUNTIME_HEALTHY: &str = "RuntimeHealthy";
    pub const RUNTIME_ACTIVE: &str = "RuntimeActive";
    /// Of the Lock.
    pub const RESOLVED: &str = "Resolved";
    /// Of definitions whose versions are converted by rules.
    pub const STORAGE_MIGRATED: &str = "StorageMigrated";
}

/// Reasons of conditions.
pub mod reason {
    pub const AVAILABLE: &str = "Available";
    pub const UNAVAILABLE: &str = "Unavailable";
    pub const CREATING: &str = "Creating";
    pub const DELETING: &str = "Deleting";
    pub const WAITING: &str = "Waiting";
    pub const RECONCILE_SUCCESS: &str = "ReconcileSuccess";
    pub const RECONCILE_ERROR: &str = "ReconcileError";
    pub const RECONCILE_PAUSED: &str = "ReconcilePaused";
    pub const WATCHING_COMPOSITE: &str = "WatchingCompositeResource";
    pub const WATCHING_CLAIM: &str = "WatchingCompositeResourceClaim";
    pub const ALL_STORED: &str = "AllStored";
    pub const MIGRATING: &str = "Migrating";
    pub const NO_CONVERSION_WEBHOOK: &str = "NoConversionWebhook";
    pub const TERMINATING_COMPOSITE: &str = "TerminatingCompositeResource";
    pub const TERMINATING_CLAIM: &str = "TerminatingCompositeResourceClaim";
    /// Ours: Crossplane writes no condition for a definition that cannot work.
    pub const INVALID_DEFINITION: &str = "InvalidDefinition";
    pub const NAMES_NOT_ACCEPTED: &str = "NamesNotAccepted";
    pub const CANNOT_APPLY_CRD: &str = "CannotApplyCRD";
    pub const VALID_PIPELINE: &str = "ValidPipeline";
    pub const MISSING_CAPABILITIES: &str = "MissingCapabilities";
    pub const WATCH_CIRCUIT_OPEN: &str = "WatchCircuitOpen";
    pub const WATCH_CIRCUIT_CLOSED: &str = "WatchCircuitClosed";
    /// Ours: Crossplane reports nothing until the call of a function times out.
    pub const WAITING_FOR_FUNCTION: &str = "WaitingForFunction";
    /// Of custom conditions whose truth is unknown because the pipeline failed.
    pub const FATAL_ERROR: &str = "FatalError";
    pub const HEALTHY_PACKAGE_REVISION: &str = "HealthyPackageRevision";
    pub const UNHEALTHY_PACKAGE_REVISION: &str = "UnhealthyPackageRevision";
    pub const UNKNOWN_PACKAGE_REVISION_HEALTH: &str = "UnknownPackageRevisionHealth";
    pub const ACTIVE_PACKAGE_REVISION: &str = "ActivePackageRevision";
    pub const INACTIVE_PACKAGE_REVISION: &str = "InactivePackageRevision";
    pub const UNPACKING_PACKAGE: &str = "UnpackingPackage";
    pub const ACTIVE_RUNTIME: &str = "ActiveRuntime";
    pub const AWAITING_ACTIVATION: &str = "AwaitingActivation";
    pub const RESOLUTION_SUCCEEDED: &str = "DependencyResolutionSucceeded";
    pub const RESOLUTION_FAILED: &str = "DependencyResolutionFailed";
    pub const ESTABLISHED_MANAGED: &str = "EstablishedManagedResource";
    pub const PENDING_MANAGED: &str = "PendingManagedResource";
    pub const INACTIVE_MANAGED: &str = "InactiveManagedResource";
    pub const TERMINATING_MANAGED: &str = "TerminatingManagedResource";
    pub const BLOCKED_ACTIVATION_POLICY: &str = "BlockedManagedResourceActivationPolicy";
    pub const TERMINATING_ACTIVATION_POLICY: &str = "TerminatingManagedResourceActivationPolicy";
    /// Of an activation policy that is healthy.
    pub const RUNNING: &str = "Running";
    /// Of an activation policy that is not.
    pub const ENCOUNTERED_ERRORS: &str = "EncounteredErrors";
}

/// Reasons of events, by the kind they are recorded on.
pub mod event {
    /// On composite resources.
    pub mod composite {
        pub const SELECT_COMPOSITION: &str = "SelectComposition";
        pub const COMPOSE: &str = "ComposeResources";
        pub const RBAC: &str = "RoleBasedAccessControl";
        pub const PUBLISH: &str = "PublishConnectionSecret";
        pub const WATCH: &str = "WatchComposedResources";
        pub const INIT: &str = "InitializeCompositeResource";
        pub const DELETE: &str = "DeleteCompositeResource";
        pub const PAUSED: &str = "ReconciliationPaused";
        pub const NAMESPACE_OVERRIDDEN: &str = "NamespaceOverridden";
        pub const RECONCILE_REQUEST_HANDLED: &str = "ReconcileRequestHandled";
        pub const COMPOSITION_SELECTION: &str = "CompositionSelection";
        /// Ours: Crossplane ignores such fields without an event.
        pub const IGNORED: &str = "IgnoredFields";
        /// Ours: Crossplane stops at a composed resource without a name.
        pub const UNNAMED: &str = "UnnamedResource";
    }

    /// On claims.
    pub mod claim {
        pub const BIND: &str = "BindCompositeResource";
        pub const DELETE: &str = "DeleteCompositeResource";
        pub const PROPAGATE: &str = "PropagateConnectionSecret";
        pub const PAUSED: &str = "ReconciliationPaused";
    }

    /// On XRDs.
    pub mod definition {
        pub const RENDER_CRD: &str = "RenderCRD";
        pub const ESTABLISH: &str = "EstablishComposite";
        pub const TERMINATE: &str = "TerminateComposite";
        pub const RESTART: &str = "RestartComposite";
        pub const OFFER: &str = "OfferClaim";
        pub const REDACT: &str = "RedactClaim";
    }

    /// On Compositions and their revisions.
    pub mod composition {
        pub const CREATE_REVISION: &str = "CreateRevision";
        pub const UPDATE_REVISION: &str = "UpdateRevision";
        pub const CHECK_CAPABILITIES: &str = "CheckCapabilities";
    }

    /// On usages.
    pub mod usage {
        pub const RESOLVE_SELECTORS: &str = "ResolveSelectors";
        pub const FIND_USAGES: &str = "FindUsages";
        pub const GET_USED: &str = "GetUsedResource";
        pub const GET_USING: &str = "GetUsingResource";
        pub const ADD_DETAILS: &str = "AddDetailsToUsage";
        pub const ADD_OWNER: &str = "AddOwnerRefToUsage";
        pub const ADD_IN_USE_LABEL: &str = "AddInUseLabel";
        pub const REMOVE_IN_USE_LABEL: &str = "RemoveInUseLabel";
        pub const ADD_FINALIZER: &str = "AddFinalizer";
        pub const REMOVE_FINALIZER: &str = "RemoveFinalizer";
        pub const REPLAY_DELETION: &str = "ReplayDeletion";
        pub const CONFIGURED: &str = "UsageConfigured";
        pub const WAITING_USING_DELETED: &str = "WaitingUsingDeleted";
    }

    /// On packages.
    pub mod package {
        pub const LIST_REVISION: &str = "ListRevision";
        pub const UNPACK: &str = "UnpackPackage";
        pub const TRANSITION_REVISION: &str = "TransitionRevision";
        pub const GARBAGE_COLLECT: &str = "GarbageCollect";
        pub const INSTALL: &str = "InstallPackageRevision";
        pub const PAUSED: &str = "ReconciliationPaused";
    }

    /// On package revisions.
    pub mod package_revision {
        pub const PARSE: &str = "ParsePackage";
        pub const LINT: &str = "LintPackage";
        pub const VALIDATE: &str = "ValidatePackage";
        pub const RESOLVE_DEPENDENCIES: &str = "ResolveDependencies";
        pub const CONVERT_CRD: &str = "ConvertCRDToMRD";
        pub const SYNC: &str = "SyncPackage";
        pub const DEACTIVATE: &str = "DeactivateRevision";
        pub const PAUSED: &str = "ReconciliationPaused";
        /// Of the runtime.
        pub const FETCH_IMAGE_CONFIG: &str = "FetchResolvedImageConfig";
    }

    /// On definitions of managed resources.
    pub mod managed {
        pub const RECONCILE: &str = "Reconcile";
        pub const APPLY_CRD: &str = "ApplyCustomResourceDefinition";
        pub const PAUSED: &str = "ReconciliationPaused";
    }

    /// On activation policies.
    pub mod activation_policy {
        pub const ACTIVATE: &str = "ActivateManagedResourceDefinition";
        pub const PAUSED: &str = "ReconciliationPaused";
    }
}

/// Fixed texts of conditions and events.
pub mod message {
    pub const PAUSED: &str = "Reconciliation (including deletion) is paused via the pause annotation";
    /// Of definitions of managed resources and their policies.
    pub const MANAGED_PAUSED: &str = "Reconciliation is paused via the pause annotation";
    /// Server answers about invalid objects may hold unstable addresses, so the condition only points at the events.
    pub const INVALID_RESOURCES: &str = "some resources were invalid, check events";
    pub const CLAIM_WAITING: &str = "Claim is waiting for composite resource to become Ready";
    pub const CLAIM_BOUND: &str = "Successfully bound composite resource";
    pub const CLAIM_COMPOSITE_NOT_READY: &str = "Composite resource is not yet ready";
    pub const CLAIM_PROPAGATED: &str = "Successfully propagated connection details from composite resource";
    pub const CLAIM_DELETED_COMPOSITE: &str = "Successfully deleted composite resource";
    pub const CAPABLE: &str = "All functions have required composition capability";
    pub const CREATED_REVISION: &str = "Created new revision";
    pub const AWAITING_ACTIVATION: &str =
        "Package runtime is scaled to zero; awaiting the first ManagedResourceDefinition to be activated";
}
