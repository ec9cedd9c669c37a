// What programs do with the official JavaScript client: typed and generic CRUD, patches, server-side
// apply, watches, informers, custom resources, paging and errors. Every check has a namespace of its own.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const entry = `${process.env.CLIENT_MODULES}/@kubernetes/client-node/dist/index.js`;
const k8s = await import(pathToFileURL(entry).href);

const config = new k8s.KubeConfig();
config.loadFromFile(process.argv[2]);
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const definitions = config.makeApiClient(k8s.ApiextensionsV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);
const group = "js.example.org";

async function refused(code, reason, action) {
  try {
    await action();
  } catch (error) {
    assert.equal(error.code, code, `${error.code} instead of ${code}: ${error.body}`);
    const status = typeof error.body === "string" ? JSON.parse(error.body) : error.body;
    if (reason) assert.equal(status.reason, reason);
    return status;
  }
  assert.fail(`no refusal with ${code}`);
}

async function eventually(what, test, seconds = 30) {
  const deadline = Date.now() + seconds * 1000;
  while (!(await test())) {
    assert.ok(Date.now() < deadline, `${what} did not come`);
    await sleep(50);
  }
}

const map = (name, data, labels) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels }, data });

async function define(plural, kind) {
  const schema = {
    type: "object",
    properties: {
      spec: {
        type: "object",
        properties: { size: { type: "integer", maximum: 9 }, mode: { type: "string", _default: "auto" } },
      },
      status: { type: "object", x_kubernetes_preserve_unknown_fields: true },
    },
  };
  await definitions.createCustomResourceDefinition({
    body: {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: `${plural}.${group}` },
      spec: {
        group,
        scope: "Namespaced",
        names: { plural, kind },
        versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema }, subresources: { status: {} } }],
      },
    },
  });
  await eventually(`${plural} established`, async () => {
    const seen = await definitions.readCustomResourceDefinition({ name: `${plural}.${group}` });
    return seen.status?.conditions?.some((each) => each.type === "Established" && each.status === "True");
  });
  await eventually(`${plural} served`, () => custom.listClusterCustomObject({ group, version: "v1", plural }).then(() => true, () => false));
}

const checks = {
  async typedCrud(namespace) {
    const made = await core.createNamespacedConfigMap({ namespace, body: map("a", { x: "1" }) });
    assert.ok(made.metadata.uid);
    made.data.x = "2";
    const changed = await core.replaceNamespacedConfigMap({ name: "a", namespace, body: made });
    assert.deepEqual(changed.data, { x: "2" });
    await refused(409, "Conflict", () => core.replaceNamespacedConfigMap({ name: "a", namespace, body: made }));
    await core.deleteNamespacedConfigMap({ name: "a", namespace });
    await refused(404, "NotFound", () => core.readNamespacedConfigMap({ name: "a", namespace }));
  },

  async patches(namespace) {
    await core.createNamespacedConfigMap({ namespace, body: map("p", { a: "1", b: "2" }) });
    const send = (body, strategy) =>
      core.patchNamespacedConfigMap({ name: "p", namespace, body }, k8s.setHeaderOptions("Content-Type", strategy));
    assert.deepEqual((await send([{ op: "remove", path: "/data/a" }], k8s.PatchStrategy.JsonPatch)).data, { b: "2" });
    assert.deepEqual((await send({ data: { c: "3", b: null } }, k8s.PatchStrategy.MergePatch)).data, { c: "3" });
    assert.deepEqual((await send({ data: { d: "4" } }, k8s.PatchStrategy.StrategicMergePatch)).data, { c: "3", d: "4" });
    await refused(422, "Invalid", () => send([{ op: "test", path: "/data/d", value: "no" }], k8s.PatchStrategy.JsonPatch));
  },

  async serverSideApply(namespace) {
    const apply = (fieldManager, data, force) =>
      core.patchNamespacedConfigMap(
        { name: "s", namespace, body: map("s", data), fieldManager, force },
        k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.ServerSideApply),
      );
    await apply("one", { a: "1", b: "1" });
    const status = await refused(409, "Conflict", () => apply("two", { a: "2" }));
    assert.equal(status.details.causes[0].field, ".data.a");
    assert.equal((await apply("two", { a: "2" }, true)).data.a, "2");
    assert.deepEqual((await apply("one", {})).data, { a: "2" });
  },

  async genericObjects(namespace) {
    const made = await objects.create({ ...map("g", { a: "1" }), metadata: { name: "g", namespace } });
    assert.equal(made.kind, "ConfigMap");
    const read = await objects.read({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "g", namespace } });
    read.data = { a: "2" };
    assert.equal((await objects.replace(read)).data.a, "2");
    const listed = await objects.list("v1", "ConfigMap", namespace);
    assert.ok(listed.items.some((each) => each.metadata.name === "g"));
    await objects.delete(read);
    await refused(404, "NotFound", () => objects.read(read));
  },

  async paging(namespace) {
    for (let index = 0; index < 5; index++) await core.createNamespacedConfigMap({ namespace, body: map(`n${index}`, {}, { part: "x" }) });
    const names = [];
    let token;
    do {
      const page = await core.listNamespacedConfigMap({ namespace, limit: 2, _continue: token, labelSelector: "part=x" });
      names.push(...page.items.map((each) => each.metadata.name));
      token = page.metadata._continue;
    } while (token);
    assert.deepEqual(names, ["n0", "n1", "n2", "n3", "n4"]);
    await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector: "part=x" });
    assert.equal((await core.listNamespacedConfigMap({ namespace, labelSelector: "part=x" })).items.length, 0);
  },

  async watch(namespace) {
    const seen = [];
    const start = (await core.listNamespacedConfigMap({ namespace })).metadata.resourceVersion;
    const abort = await new k8s.Watch(config).watch(
      `/api/v1/namespaces/${namespace}/configmaps`,
      { resourceVersion: start, allowWatchBookmarks: true },
      (type, object) => type !== "BOOKMARK" && seen.push(`${type} ${object.metadata.name} ${object.data?.v}`),
      () => {},
    );
    await core.createNamespacedConfigMap({ namespace, body: map("w", { v: "1" }) });
    await core.patchNamespacedConfigMap(
      { name: "w", namespace, body: { data: { v: "2" } } },
      k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch),
    );
    await core.deleteNamespacedConfigMap({ name: "w", namespace });
    await eventually("three events", () => seen.length >= 3);
    abort.abort();
    assert.deepEqual(seen, ["ADDED w 1", "MODIFIED w 2", "DELETED w 2"]);
  },

  async informer(namespace) {
    await core.createNamespacedSecret({ namespace, body: { metadata: { name: "before" } } });
    const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/secrets`, () => core.listNamespacedSecret({ namespace }));
    const seen = [];
    for (const event of ["add", "update", "delete"]) informer.on(event, (object) => seen.push(`${event} ${object.metadata.name}`));
    await informer.start();
    await core.createNamespacedSecret({ namespace, body: { metadata: { name: "after" }, stringData: { k: "v" } } });
    await eventually("the addition", () => seen.includes("add after"));
    await core.deleteNamespacedSecret({ name: "before", namespace });
    await eventually("the deletion", () => seen.includes("delete before"));
    assert.equal(informer.list(namespace).map((each) => each.metadata.name).join(), "after");
    await informer.stop();
  },

  async customObjects(namespace) {
    await define("wheels", "Wheel");
    const at = { group, version: "v1", namespace, plural: "wheels" };
    const body = { apiVersion: `${group}/v1`, kind: "Wheel", metadata: { name: "w" }, spec: { size: 3, odd: true } };
    const made = await custom.createNamespacedCustomObject({ ...at, body });
    assert.deepEqual(made.spec, { size: 3, mode: "auto" });
    const merge = k8s.setHeaderOptions("Content-Type", k8s.PatchStrategy.MergePatch);
    const status = await custom.patchNamespacedCustomObjectStatus({ ...at, name: "w", body: { status: { up: true } } }, merge);
    assert.deepEqual([status.status, status.metadata.generation], [{ up: true }, 1]);
    const refusal = await refused(422, "Invalid", () => custom.patchNamespacedCustomObject({ ...at, name: "w", body: { spec: { size: 10 } } }, merge));
    assert.equal(refusal.details.causes[0].field, "spec.size");
    const seen = [];
    const abort = await new k8s.Watch(config).watch(
      `/apis/${group}/v1/namespaces/${namespace}/wheels`,
      {},
      (type, object) => seen.push(`${type} ${object.metadata.name}`),
      () => {},
    );
    await custom.deleteNamespacedCustomObject({ ...at, name: "w" });
    await eventually("the deletion", () => seen.includes("DELETED w"));
    abort.abort();
  },

  async deployments(namespace) {
    const labels = { app: "web" };
    const spec = {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "registry.example.org/web:1" }] } },
    };
    const made = await apps.createNamespacedDeployment({ namespace, body: { metadata: { name: "web" }, spec } });
    assert.equal(made.spec.replicas, 1);
    const scale = await apps.readNamespacedDeploymentScale({ name: "web", namespace });
    scale.spec.replicas = 4;
    await apps.replaceNamespacedDeploymentScale({ name: "web", namespace, body: scale });
    assert.equal((await apps.readNamespacedDeployment({ name: "web", namespace })).spec.replicas, 4);
  },

  async errors(namespace) {
    await refused(404, "NotFound", () => core.createNamespacedConfigMap({ namespace: "absent", body: map("a") }));
    const invalid = await refused(422, "Invalid", () => core.createNamespacedConfigMap({ namespace, body: map("Bad_Name") }));
    assert.equal(invalid.details.causes[0].field, "metadata.name");
    await refused(400, "BadRequest", () => core.listNamespacedConfigMap({ namespace, fieldSelector: "nonsense=1" }));
    await core.createNamespacedConfigMap({ namespace, body: map("dup") });
    await refused(409, "AlreadyExists", () => core.createNamespacedConfigMap({ namespace, body: map("dup") }));
  },

  async reviews(namespace) {
    const api = config.makeApiClient(k8s.AuthorizationV1Api);
    const spec = { resourceAttributes: { verb: "get", resource: "secrets", namespace } };
    const review = await api.createSelfSubjectAccessReview({ body: { spec } });
    assert.equal(review.status.allowed, true);
    const version = await config.makeApiClient(k8s.VersionApi).getCode();
    assert.equal(version.major, "1");
  },
};

let failed = 0;
for (const [name, run] of Object.entries(checks)) {
  const namespace = `js-${name.toLowerCase()}`;
  try {
    await core.createNamespace({ body: { metadata: { name: namespace } } });
    await run(namespace);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}\n${error.stack}`);
  }
}
console.log(`node: ${Object.keys(checks).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
