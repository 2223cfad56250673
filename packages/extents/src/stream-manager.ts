/**
 * The stream manager: knows streams, extents and nodes, and is never on the way of data. It has extents opened
 * (`extent-opening.ts`) and sealed (`sealing.ts`). `NodeReports` takes in what nodes say that they have, `RepairLoop`
 * restores redundancy. All changes are transactions over the versions that they were decided on.
 */

import { RpcError } from '@rocev2/rpc';
import { statusOf } from './cluster-status.js';
import { codedPlace } from './coding/coded-place.js';
import { isShown, OPEN_ATTEMPTS, OPEN_EPOCH, openExtent } from './extent-opening.js';
import { checkFolder, checkRunning, noteRefusal, refuseFolder } from './folder-marks.js';
import { KeyedMutex } from './keyed-mutex.js';
import { LiveNodes } from './live-nodes.js';
import type { ManagerParts, WaitingExtent } from './manager-state.js';
import type { ClusterStatus, ExtentPlace, ManagerCounters, ManagerMethods } from './messages.js';
import { MetadataCheck } from './metadata-check.js';
import { MetadataHistory } from './metadata-history.js';
import { recoverMetadata } from './metadata-recovery.js';
import {
  type ExtentRecord,
  extentKey,
  MetadataSchema,
  ownerPlace,
  REPLICAS,
  type ServedPlace,
  servedAt,
} from './metadata-schema.js';
import { NodeReports } from './node-reports.js';
import { randomName } from './random-name.js';
import { type SealCandidates, type SealDecision, type SealingManager, sealExtent, sealedLength } from './sealing.js';
import { undeleteStream } from './undelete-stream.js';

/** Extents that one transaction takes into a stream; etcd does 128 operations in one, by default. */
const LINKED_EXTENTS_MAX = 100;

/** Those that are answered before the metadata is known to be the latest. */
const UNVERIFIED_METHODS: ReadonlySet<keyof ManagerMethods> = new Set([
  'join',
  'refuse',
  'report',
  'status',
  'recover',
]);

type Handlers = {
  readonly [M in keyof ManagerMethods]: (request: ManagerMethods[M][0]) => Promise<ManagerMethods[M][1]>;
};

export class StreamManager implements SealingManager {
  readonly counters: ManagerCounters = {
    seals: 0,
    copies: 0,
    codings: 0,
    rebuilds: 0,
    deleted: 0,
    refusedDisks: 0,
  };
  readonly parts: ManagerParts;
  readonly history: MetadataHistory;
  readonly metadataCheck: MetadataCheck;
  readonly schema: MetadataSchema;
  readonly live: LiveNodes;
  readonly busy = new Set<number>();
  readonly waiting = new Map<number, WaitingExtent>();
  copying = 0;
  coding = 0;
  #cluster = '';
  readonly #handlers: Handlers;
  readonly #reports = new NodeReports(this);
  /** The last request of each stream, and of each extent that is sealed: one after another. */
  readonly #mutexes = new KeyedMutex<string>();

  constructor(parts: ManagerParts) {
    this.history = new MetadataHistory(parts.metadata);
    this.parts = { ...parts, metadata: this.history };
    this.schema = new MetadataSchema(this.history);
    this.live = new LiveNodes(parts.clock, parts.random, parts.timing.downMs);
    this.metadataCheck = new MetadataCheck({
      history: this.history,
      live: this.live,
      clock: parts.clock,
      waitMs: parts.timing.callMs,
      isTrusted: parts.trustsMetadata === true,
      isRecovering: parts.isRecovering === true,
    });
    this.#handlers = {
      introduce: async () => ({ node: await this.schema.newNode(), cluster: this.#cluster }),
      join: (request) => this.#join(request),
      refuse: async ({ cluster, reason, ...started }) => {
        if (cluster === this.#cluster) await noteRefusal(this, started, reason);
        return {};
      },
      report: (request) => this.#reports.take(request),
      createStream: ({ stream }) => this.#createStream(stream),
      deleteStream: ({ stream }) => this.#deleteStream(stream),
      openStream: (request) => this.#exclusive(`stream/${request.stream}`, () => this.#openStream(request)),
      renew: (request) => this.#renew(request),
      release: (request) => this.#exclusive(`stream/${request.stream}`, () => this.#release(request)),
      advance: (request) => this.#exclusive(`stream/${request.stream}`, () => this.#advance(request)),
      adopt: (request) => this.#linkExtents(request),
      drop: ({ stream, epoch, extents }) =>
        this.#changeExtents(stream, epoch, (old) => old.filter((extent) => !extents.includes(extent))),
      owner: ({ stream }) => this.#ownerPlace(stream),
      locate: ({ stream }) => this.#locate(stream),
      cut: ({ stream }) => this.#exclusive(`stream/${stream}`, () => this.#sealTail(stream)),
      locateExtent: async ({ extent }) => this.#place(extent, (await this.schema.extent(extent)).value),
      recover: () => this.#exclusive('recover', () => recoverMetadata(this)),
      undelete: ({ stream }) => this.#exclusive(`stream/${stream}`, () => undeleteStream(this, stream)),
      accept: ({ extents }) => this.#accept(extents),
      status: () => this.#status(),
    };
  }

  /** Before that it answers nothing. */
  async start(): Promise<void> {
    const { random } = this.parts;
    await this.history.begin(randomName(random, 2));
    this.#cluster = await this.schema.cluster(() => randomName(random, 4));
    for (const { node, value } of await this.schema.nodes()) this.live.add({ node, ...value });
  }

  async handle<M extends keyof ManagerMethods>(
    method: M,
    request: ManagerMethods[M][0],
  ): Promise<ManagerMethods[M][1]> {
    if (!UNVERIFIED_METHODS.has(method) && !this.metadataCheck.isVerified) await this.metadataCheck.passed();
    return this.#handlers[method](request);
  }

  #exclusive<T>(name: string, work: () => Promise<T>): Promise<T> {
    return this.#mutexes.run(name, work);
  }

  async #join(request: ManagerMethods['join'][0]): Promise<ManagerMethods['join'][1]> {
    const { node, cluster, address, lives, domain, folder, seen, trustFolder = false } = request;
    const isOther = cluster !== this.#cluster;
    if (isOther && this.parts.isRecovering === true && (await this.schema.acceptCluster(cluster)))
      this.#cluster = cluster;
    if (cluster !== this.#cluster)
      throw new RpcError(
        'CONFLICT',
        `the disk of node ${node} belongs to cluster ${cluster}, and this is ${this.#cluster}; name the manager of its cluster, or an empty folder`,
      );
    const known = await this.schema.node(node);
    if (known !== undefined) await checkRunning(this, request, known.value);
    // Recovery asks nodes that have joined since this copy of the metadata was made.
    const before = this.live.get(node);
    const lastNs = before?.heardNs ?? 0;
    const nowNs = this.parts.clock.nowNs();
    if (before?.address === address) before.heardNs = nowNs;
    else if (!this.metadataCheck.isVerified) this.live.add({ node, address, domain });
    this.metadataCheck.hear(node, seen);
    const isTrusted = trustFolder || this.metadataCheck.isRebuilding;
    const refusal = known !== undefined && !isTrusted ? checkFolder(known.value, request) : undefined;
    if (refusal !== undefined) {
      // It may run elsewhere with the latest folder; if it does not, it is no longer up.
      if (before?.heardNs === nowNs) before.heardNs = lastNs;
      if (before !== undefined) this.live.put(before);
      throw await refuseFolder(this, request, refusal);
    }
    const mark = isTrusted ? undefined : known?.value.mark;
    const place = { address, domain, ...(folder !== undefined && { folder }) };
    const value = { ...place, lives, ...(mark !== undefined && { mark }) };
    if (!(await this.schema.commit([{ key: `node/${node}`, version: known?.version ?? 0, value }])))
      throw new RpcError('BUSY', `another node ${node} is joining`);
    this.live.add({ node, address, domain });
    return { version: this.history.version, ...(mark !== undefined && { mark }) };
  }

  async #createStream(stream: string): Promise<object> {
    if (!/^[\w.-]{1,128}$/.test(stream))
      throw new RpcError(
        'INVALID',
        `'${stream}' is not a name of a stream: letters, digits, '.', '_' and '-', 128 at most`,
      );
    await this.schema.commit([{ key: `stream/${stream}`, version: 0, value: { epoch: 0, extents: [] } }]);
    return {};
  }

  async #deleteStream(stream: string): Promise<object> {
    const { key, version } = await this.schema.stream(stream);
    if (await this.#owner(stream)) throw new RpcError('BUSY', `the stream '${stream}' has an owner`);
    if (!(await this.schema.commit([{ key, version }])))
      throw new RpcError('BUSY', `the stream '${stream}' is changing`);
    return {};
  }

  #owner(stream: string) {
    return this.parts.metadata.get(`owner/${stream}`);
  }

  async #openStream({
    stream,
    owner,
    leaseMs,
    takeOver,
  }: ManagerMethods['openStream'][0]): Promise<ManagerMethods['openStream'][1]> {
    const record = await this.schema.stream(stream);
    const last = await this.#owner(stream);
    if (last !== undefined && last.value !== owner && !takeOver)
      throw new RpcError('BUSY', `the stream '${stream}' belongs to ${last.value}`);
    const value = { ...record.value, epoch: record.value.epoch + 1 };
    const version = await this.parts.metadata.commit({
      compare: [
        { key: record.key, version: record.version },
        { key: `owner/${stream}`, version: last?.version ?? 0 },
      ],
      put: [
        { key: record.key, value: JSON.stringify(value) },
        { key: `owner/${stream}`, value: owner, ttlMs: leaseMs },
      ],
    });
    if (version === 0) throw new RpcError('BUSY', `another owner of '${stream}' came first`);
    const extent = value.extents.at(-1);
    if (extent !== undefined) await this.seal(extent);
    const extents = await this.#locations(value.extents);
    return { epoch: value.epoch, extents, extentBytes: this.parts.extentBytes };
  }

  async #renew({ stream, epoch, leaseMs, owner, address }: ManagerMethods['renew'][0]): Promise<object> {
    const { value } = await this.schema.ownedStream(stream, epoch);
    const present = await this.#owner(stream);
    const isRenewed = present && (await this.parts.metadata.renew(`owner/${stream}`, present.version, leaseMs));
    if (isRenewed !== true) {
      if (owner === undefined) throw new RpcError('FENCED', `the lease of '${stream}' has ended`);
      await this.#exclusive(`stream/${stream}`, () => this.#grantAgain({ stream, epoch, leaseMs, owner }));
    }
    if (address !== undefined && servedAt(value) !== address)
      await this.#exclusive(`stream/${stream}`, () => this.#noteServed(stream, { epoch, address }));
    return {};
  }

  /** The epoch rises with each owner: if it is the same, nobody has written since the lease ended. */
  async #grantAgain({
    stream,
    epoch,
    leaseMs,
    owner,
  }: {
    readonly stream: string;
    readonly epoch: number;
    readonly leaseMs: number;
    readonly owner: string;
  }): Promise<void> {
    const { key, version } = await this.schema.ownedStream(stream, epoch);
    const present = await this.#owner(stream);
    const committed = await this.parts.metadata.commit({
      compare: [
        { key, version },
        { key: `owner/${stream}`, version: present?.version ?? 0 },
      ],
      put: [{ key: `owner/${stream}`, value: owner, ttlMs: leaseMs }],
    });
    if (committed === 0) throw new RpcError('BUSY', `the stream '${stream}' is changing`);
  }

  async #noteServed(stream: string, served: ServedPlace): Promise<void> {
    const { key, version, value } = await this.schema.ownedStream(stream, served.epoch);
    await this.schema.commit([{ key, version, value: { ...value, served } }]);
  }

  async #ownerPlace(stream: string): Promise<ManagerMethods['owner'][1]> {
    const { value } = await this.schema.stream(stream);
    const owner = await this.#owner(stream);
    return owner === undefined ? {} : ownerPlace(owner.value, value);
  }

  async #release({ stream, epoch }: ManagerMethods['release'][0]): Promise<object> {
    const { value } = await this.schema.ownedStream(stream, epoch);
    const owner = await this.#owner(stream);
    if (owner !== undefined) {
      const key = `owner/${stream}`;
      await this.parts.metadata.commit({ compare: [{ key, version: owner.version }], remove: [key] });
    }
    const extent = value.extents.at(-1);
    if (extent !== undefined) await this.seal(extent).catch(() => {});
    return {};
  }

  async #advance({ stream, epoch, extent, acked, suspects }: ManagerMethods['advance'][0]): Promise<ExtentPlace> {
    const before = await this.schema.ownedStream(stream, epoch);
    const last = before.value.extents.at(-1);
    const avoided = new Set(suspects);
    if (last !== undefined) {
      const { value } = await this.schema.extent(last);
      // A client that got its new epoch now could append while it is being sealed.
      const isFenced = value.epoch !== OPEN_EPOCH;
      const isOpen = value.sealed === undefined && !isFenced;
      if (last !== extent && isOpen && !value.replicas.some((node) => avoided.has(node))) {
        const place = this.#place(last, value);
        if (await isShown(this, place, avoided)) return place;
      }
      await this.seal(last, last === extent ? acked : undefined);
    }
    for (let attempt = 0; attempt < OPEN_ATTEMPTS; attempt++) {
      const place = await openExtent(this, { stream, epoch }, avoided);
      if (await isShown(this, place, avoided)) return place;
      await this.seal(place.extent, 0);
    }
    throw new RpcError('NO_SPACE', `fewer than ${REPLICAS} nodes can take an extent`);
  }

  /** `acked`: bytes that are acknowledged, as the owner of the extent says. */
  seal(extent: number, acked?: number): Promise<void> {
    return this.#exclusive(extentKey(extent), () => sealExtent(this, extent, { acked }));
  }

  /** Seals extents that wait for a decision with the replicas that answer. */
  async #accept(extents: readonly number[]): Promise<ManagerMethods['accept'][1]> {
    const sealed: number[] = [];
    for (const extent of extents.length === 0 ? [...this.waiting.keys()] : extents) {
      await this.#exclusive(extentKey(extent), () => sealExtent(this, extent, { isAccepted: true }));
      sealed.push(extent);
    }
    return { sealed };
  }

  /** The rule of sealing. @internal */
  chooseLength(candidates: SealCandidates): SealDecision {
    return sealedLength(candidates);
  }

  async #locate(stream: string): Promise<ManagerMethods['locate'][1]> {
    const { extents } = (await this.schema.stream(stream)).value;
    const others = (await this.schema.streams()).filter((other) => other.stream !== stream);
    const elsewhere = new Set(others.flatMap(({ value }) => value.extents));
    const located = await this.#locations(extents);
    await this.parts.confirmLead();
    return { extents: located, shared: extents.filter((extent) => elsewhere.has(extent)) };
  }

  async #sealTail(stream: string): Promise<ManagerMethods['cut'][1]> {
    const { extents } = (await this.schema.stream(stream)).value;
    const last = extents.at(-1);
    if (last !== undefined) await this.seal(last);
    return { extents: await this.#locations(extents) };
  }

  /** Each transaction takes some of them, the last ones first: a store bounds how much one may do. */
  async #linkExtents({ stream, epoch, extents }: ManagerMethods['adopt'][0]): Promise<object> {
    const unique = [...new Set(extents)];
    do {
      const some = unique.splice(-LINKED_EXTENTS_MAX);
      const before = (old: readonly number[]) => [...some.filter((extent) => !old.includes(extent)), ...old];
      await this.#changeExtents(stream, epoch, before, some);
    } while (unique.length > 0);
    return {};
  }

  async #changeExtents(
    stream: string,
    epoch: number,
    change: (old: readonly number[]) => readonly number[],
    mustExist: readonly number[] = [],
  ): Promise<object> {
    for (;;) {
      const record = await this.schema.ownedStream(stream, epoch);
      const existing = await Promise.all(mustExist.map((extent) => this.schema.extent(extent)));
      const value = { ...record.value, extents: change(record.value.extents) };
      const changes = [{ key: record.key, version: record.version, value }, ...existing];
      if (await this.schema.commit(changes)) return {};
    }
  }

  async #locations(extents: readonly number[]): Promise<ExtentPlace[]> {
    const records = await Promise.all(extents.map((extent) => this.schema.extent(extent)));
    return records.map(({ value }, k) => this.#place(extents[k], value));
  }

  #place(extent: number, { epoch, sealed, replicas, coded }: ExtentRecord): ExtentPlace {
    return {
      extent,
      epoch,
      ...(sealed !== undefined && { sealed }),
      replicas: this.live.addresses(replicas),
      ...(coded !== undefined && { coded: codedPlace(coded, this.live) }),
    };
  }

  #status(): Promise<ClusterStatus> {
    return statusOf(this, this.#cluster);
  }
}
