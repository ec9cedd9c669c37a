//! What the YAML blocks of the design write, in the order of its text. Blocks that are parts of objects are in objects here, under
//! the names that the definitions before them ask for.

/// Kinds of their time, which the design replaces: no definition of it has them.
const BACKGROUND: &str = "
apiVersion: apps.crossplane.io/v1alpha1
kind: Wordpress
metadata: {name: example-wordpress-app}
spec: {image: 'wordpress:4.6.1-apache'}
---
apiVersion: database.crossplane.io/v1alpha1
kind: MySQLInstance
metadata: {name: example-resource-claim}
spec:
  engineVersion: '5.7'
  writeConnectionSecretToRef: {name: sql}
  classSelector: {matchLabels: {example: 'true'}}
---
apiVersion: database.gcp.crossplane.io/v1beta1
kind: CloudSQLInstanceClass
metadata: {name: example-resource-class, labels: {example: 'true'}}
specTemplate:
  forProvider: {databaseVersion: MYSQL_5_6, region: us-west2}
  writeConnectionSecretsToNamespace: crossplane-system
  providerRef: {name: example}
";

const COMPOSITION: &str = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: Composition
metadata: {name: private-mysql-server, labels: {connectivity: private}}
spec:
  from: {apiVersion: database.example.org/v1alpha1, kind: MySQLInstance}
  to:
  - base:
      apiVersion: azure.crossplane.io/v1alpha3
      kind: ResourceGroup
      metadata:
      spec:
        location: West US
        providerRef: {name: example}
        reclaimPolicy: Delete
    patches:
    - fromFieldPath: spec.region
      toFieldPath: spec.forProvider.location
      transforms:
      - type: map
        map: {us-west: West US, us-east: East US}
  - base:
      apiVersion: database.azure.crossplane.io/v1beta1
      kind: MySQLServer
      spec:
        forProvider:
          administratorLogin: myadmin
          resourceGroupNameSelector: {matchComposite: true}
          location: West US
          sslEnforcement: Disabled
          version: '5.6'
          sku: {tier: Basic, capacity: 1, family: Gen5}
          storageProfile: {storageMB: 20480}
        writeConnectionSecretToRef: {namespace: crossplane-system}
        providerRef: {name: example}
        reclaimPolicy: Delete
    patches:
    - {fromFieldPath: metadata.uid, toFieldPath: spec.writeConnectionSecretToRef.name}
    - {fromFieldPath: spec.engineVersion, toFieldPath: spec.forProvider.version}
    - fromFieldPath: spec.storageGB
      toFieldPath: spec.forProvider.storageMB
      transforms: [{type: math, math: {multiply: 1024}}]
    - fromFieldPath: spec.region
      toFieldPath: spec.forProvider.location
      transforms:
      - type: map
        map: {us-west: West US, us-east: East US}
    connectionDetails:
    - {name: username, fromConnectionSecretKey: username}
    - {name: password, fromConnectionSecretKey: password}
    - {name: endpoint, fromConnectionSecretKey: endpoint}
  - base:
      apiVersion: database.azure.crossplane.io/v1alpha3
      kind: MySQLServerVirtualNetworkRule
      spec:
        name: my-cool-vnet-rule
        serverNameSelector: {matchComposite: true}
        resourceGroupNameSelector: {matchComposite: true}
        properties: {virtualNetworkSubnetIdRef: {name: sample-subnet}}
        reclaimPolicy: Delete
        providerRef: {name: azure-provider}
";

const APPLICATION: &str = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ApplicationDefinition
metadata: {name: wordpresses.apps.example.org}
spec:
  crdSpecTemplate:
    group: apps.example.org
    version: v1alpha1
    names: {kind: Wordpress, listKind: WordpressList, plural: wordpresses, singular: wordpress}
    validation:
      openAPIV3Schema:
        properties:
          administratorLogin: {type: string}
          storageSize: {type: int}
          storageType: {type: string}
        type: object
  serviceAccountRef: {namespace: crossplane-system, name: wordpresses.apps.example.org}
  defaultComposition:
    {apiVersion: apiextensions.crossplane.io/v1alpha1, kind: Composition, name: local-wordpress}
  forceComposition:
    {apiVersion: apiextensions.crossplane.io/v1alpha1, kind: Composition, name: wordpresses.apps.example.org}
---
apiVersion: example.org/v1alpha1
kind: Wordpress
metadata: {namespace: default, name: coolblog}
spec:
  administratorLogin: admin
  storageSize: 2
  storageType: SSD
  application:
    compositionSelector: {matchLabels: {compute: kubernetes, database: mysql}}
    compositionRef:
    - name: wordpress-kubernetes-mysql
    composedRefs:
    - {apiVersion: database.example.org/v1alpha1, kind: MySQLInstanceRequirement, name: coolblog-3jmdf}
    - {apiVersion: workload.crossplane.io/v1alpha1, kind: KubernetesApplication, name: coolblog-3mdm2}
";

const INFRASTRUCTURE: &str = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: InfrastructureDefinition
metadata: {name: mysqlinstances.database.example.org}
spec:
  connectionDetails: [username, password, endpoint]
  crdSpecTemplate:
    group: database.example.org
    version: v1alpha1
    names: {kind: MySQLInstance, listKind: MySQLInstanceList, plural: mysqlinstances, singular: mysqlinstance}
    validation:
      openAPIV3Schema:
        properties:
          engineVersion: {type: string}
          region: {type: string}
          storageGB: {type: int}
        type: object
  serviceAccountRef: {namespace: crossplane-system, name: mysqlinstances.database.example.org}
  defaultComposition:
    {apiVersion: apiextensions.crossplane.io/v1alpha1, kind: Composition, name: cheap-rds}
  forceComposition:
    {apiVersion: apiextensions.crossplane.io/v1alpha1, kind: Composition, name: mysqlinstances.database.example.org}
---
apiVersion: database.example.org/v1alpha1
kind: MySQLInstance
metadata: {name: sql}
spec:
  engineVersion: '5.7'
  storageGB: 10
  region: us-west
  infrastructure:
    compositionSelector: {matchLabels: {connectivity: private}}
    compositionRef:
    - name: private-mysql-server
    composedRefs:
    - {apiVersion: azure.crossplane.io/v1alpha3, kind: ResourceGroup, name: sql-34jd2}
    - {apiVersion: database.azure.crossplane.io/v1beta1, kind: MySQLServer, name: sql-3i3d1}
    - {apiVersion: database.azure.crossplane.io/v1alpha3, kind: MySQLServerVirtualNetworkRule, name: sql-2mdus}
    writeConnectionSecretToRef: {namespace: crossplane-system, name: sql}
    requirementRef:
      apiVersion: database.example.org/v1alpha1
      kind: MySQLInstanceRequirement
      namespace: default
      name: sql
    reclaimPolicy: Retain
";

const PUBLICATION: &str = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: InfrastructurePublication
metadata: {name: mysqlinstances.database.example.org}
spec:
  infrastructureDefinitionReference: {name: mysqlinstances.database.example.org}
---
apiVersion: database.example.org/v1alpha1
kind: MySQLInstanceRequirement
metadata: {namespace: default, name: sql}
spec:
  engineVersion: '5.7'
  storageGB: 10
  region: us-west
  infrastructure:
    resourceRef:
    - {apiVersion: database.example.org/v1alpha1, kind: MySQLInstance, name: default-sql-dd02m}
    compositionSelector: {matchLabels: {connectivity: private}}
    compositionRef:
    - name: private-mysql-server
    writeConnectionSecretToRef: {name: sql}
";

/// Patches, their transforms, references and selectors, and a contract that two resources fulfil: the Composition that the definition
/// forces.
const PARTS: &str = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: Composition
metadata: {name: mysqlinstances.database.example.org}
spec:
  from: {apiVersion: database.example.org/v1alpha1, kind: MySQLInstance}
  to:
  - base:
      apiVersion: database.azure.crossplane.io/v1beta1
      kind: MySQLServer
      spec:
        forProvider:
          network: /projects/example/global/networks/desired-vpc-network
          networkRef: {name: desired-vpc-network}
          networkSelector: {matchControllerRef: true, matchLabels: {example: label}}
        writeConnectionSecretToRef: {namespace: crossplane-system}
    patches:
    - {fromFieldPath: spec.region, toFieldPath: spec.forProvider.region}
    - fromFieldPath: spec.region
      toFieldPath: spec.forProvider.location
      transforms:
      - type: map
        map: {us-west: West US, us-east: East US}
    - fromFieldPath: spec.storageGB
      toFieldPath: spec.forProvider.storageProfile.storageMB
      transforms: [{type: math, math: {multiply: 1024}}]
    - fromFieldPath: metadata.uid
      toFieldPath: spec.writeConnectionSecretToRef.name
      transforms: [{type: string, string: {fmt: '%s-postgresqlserver'}}]
    - fromFieldPath: metadata.annotations[crossplane.io/external-name]
      toFieldPath: metadata.annotations[crossplane.io/external-name]
      transforms: [{type: string, string: {fmt: '%s-a'}}]
    connectionDetails:
    - {name: username, fromConnectionSecretKey: admin-username}
    - {fromConnectionSecretKey: password}
  - base:
      apiVersion: azure.crossplane.io/v1alpha3
      kind: ResourceGroup
      spec: {writeConnectionSecretToRef: {namespace: crossplane-system}}
    patches:
    - fromFieldPath: metadata.uid
      toFieldPath: spec.writeConnectionSecretToRef.name
      transforms: [{type: string, string: {fmt: '%s-group'}}]
    connectionDetails:
    - {fromConnectionSecretKey: endpoint}
";

/// What the text says that an application is composed of: a requirement, and an object of its namespace.
const WORDPRESS: &str = "
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: Composition
metadata: {name: wordpresses.apps.example.org}
spec:
  from: {apiVersion: apps.example.org/v1alpha1, kind: Wordpress}
  to:
  - base:
      apiVersion: database.example.org/v1alpha1
      kind: MySQLInstanceRequirement
      spec:
        engineVersion: '5.7'
        region: us-east
        infrastructure: {writeConnectionSecretToRef: {name: blog-sql}}
    patches:
    - {fromFieldPath: spec.storageSize, toFieldPath: spec.storageGB}
  - base: {apiVersion: v1, kind: ConfigMap}
    patches:
    - {fromFieldPath: spec.administratorLogin, toFieldPath: data.login}
";

/// Every block, in one stream.
pub(crate) fn all() -> String {
    [BACKGROUND, &proposal()].join("---")
}

/// The blocks of the proposal itself.
pub(crate) fn proposal() -> String {
    [COMPOSITION, APPLICATION, INFRASTRUCTURE, PUBLICATION, PARTS, WORDPRESS].join("---")
}
