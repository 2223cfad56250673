/**
 * The control operations of the NIC: makes, changes and frees its objects (IBTA vol. 1 chapter 10 and §11.2). Each
 * refusal is a RoceError and has no effect.
 */

import { RoceError } from '../core/errors.js';
import type { ForeignMemory } from '../memory/foreign-memory.js';
import type { KeyTable } from '../memory/key-table.js';
import type { NicMemoryRegion } from '../memory/keyed-range.js';
import { checkAttributes } from '../memory/ring/attribute-ranges.js';
import {
  type CommandArgs,
  type CommandName,
  type CommandResult,
  QP_ATTR_AV,
  QP_ATTR_STATE,
} from '../memory/ring/commands.js';
import { CompletionRing } from '../memory/ring/completion-ring.js';
import { QP_TYPES, QPS_ERR, QPS_RESET, SOURCE_PORT_FLOW } from '../memory/ring/enums.js';
import { RecvQueue, SendQueue } from '../memory/ring/work-queue.js';
import { initialAttributes } from '../qp/attributes.js';
import type { QpHost } from '../qp/host.js';
import type { NicQueuePair } from '../qp/nic-queue-pair.js';
import type { Path } from '../qp/path.js';
import { QUEUE_PAIR_TYPES, type QueuePairType } from '../qp/queue-pair-types.js';
import { HandleTable } from './handle-table.js';
import type { PeerPaths } from './peer-paths.js';
import type { PortFacts } from './port-facts.js';
import { NicCompletionQueue, NicSharedReceiveQueue, OwnReceives } from './queues.js';

interface ProtectionDomain {
  users: number;
}

interface AddressHandle {
  readonly pd: number;
  readonly path: Path;
}

interface QueuePairParts {
  readonly pd: ProtectionDomain;
  readonly sendCq: NicCompletionQueue;
  readonly recvCq: NicCompletionQueue;
  readonly srq: NicSharedReceiveQueue | undefined;
}

export interface CommandEnvironment {
  readonly host: QpHost;
  readonly port: PortFacts;
  readonly keys: KeyTable;
  readonly paths: PeerPaths;
  /** A number for a new queue pair. */
  readonly newQpn: () => number;
  /** Only commands add and remove elements. */
  readonly queuePairs: Map<number, NicQueuePair>;
  /** Finds attached memory by its number; undefined when there is none. */
  readonly memory: (id: number) => ArrayBufferLike | undefined;
  readonly regionMemory: (id: number) => ArrayBufferLike | undefined;
  readonly foreignMemory: (id: number) => ForeignMemory | undefined;
  /** The queue pair has been destroyed: its timers are void, and its number is free. */
  readonly forget: (qp: NicQueuePair) => void;
}

type Handlers = { readonly [N in CommandName]: (args: CommandArgs<N>) => CommandResult<N> };

/** Entropy of the UDP source port of datagrams: one flow per address handle. */
function datagramSourcePort(handle: number): number {
  return 0xc000 | (handle & 0x3fff);
}

export class CommandTable {
  readonly #environment: CommandEnvironment;
  readonly #pds = new HandleTable<ProtectionDomain>('protection domain');
  readonly #cqs = new HandleTable<NicCompletionQueue>('completion queue');
  readonly #srqs = new HandleTable<NicSharedReceiveQueue>('shared receive queue');
  readonly #ahs = new HandleTable<AddressHandle>('address handle');
  readonly #parts = new Map<NicQueuePair, QueuePairParts>();
  #nextHandle = 1;
  #nowNs = 0;

  constructor(environment: CommandEnvironment) {
    this.#environment = environment;
  }

  execute<N extends CommandName>(name: N, args: CommandArgs<N>, now: number): CommandResult<N> {
    this.#nowNs = now;
    const handler = this.#handlers[name] as (args: CommandArgs<N>) => CommandResult<N>;
    return handler(args);
  }

  /** The path of an address handle; undefined when it does not exist or belongs to another PD. */
  pathOf(ah: number, pd: number): Path | undefined {
    const handle = this.#ahs.find(ah);
    return handle?.pd === pd ? handle.path : undefined;
  }

  readonly #handlers: Handlers = {
    queryDevice: () => {
      const { address, udpPort, fixedSourcePort, pathMtuMax, receiveBudgetPackets } = this.#environment.port;
      return {
        gid: address.gid,
        udpPort,
        sourcePort: fixedSourcePort ?? SOURCE_PORT_FLOW,
        pathMtuMax,
        receiveBudgetPackets: Math.min(receiveBudgetPackets, 0xffffffff),
      };
    },
    allocPd: () => {
      const pd = this.#nextHandle++;
      this.#pds.add(pd, { users: 0 });
      return { pd };
    },
    deallocPd: ({ pd }) => {
      if (this.#pds.get(pd).users > 0 || this.#environment.keys.ownsAny(pd)) {
        throw new RoceError(
          'ERR_ROCE_BUSY',
          'the protection domain still has objects',
          'close its QPs, MRs and MWs first',
        );
      }
      this.#pds.remove(pd);
      return {};
    },
    regMr: (region) => {
      const { handle, key } = this.#register(region);
      return { mr: handle, lkey: key, rkey: key };
    },
    reregMr: ({ mr, ...region }) => {
      this.#environment.keys.reregister(mr, (key) => this.#register(region, key));
      return {};
    },
    allocFastRegMr: ({ pd, memory, offsetBytes, lengthBytes }) => {
      this.#pds.get(pd);
      const bytes = this.#attached(memory, offsetBytes, lengthBytes);
      const region = this.#environment.keys.allocFastRegister(pd, bytes);
      return { mr: region.handle, lkey: region.key };
    },
    deregMr: ({ mr }) => {
      this.#environment.keys.deregister(mr);
      return {};
    },
    allocMw: ({ pd, type }) => {
      this.#pds.get(pd);
      if (type !== 1 && type !== 2)
        throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `memory windows have type 1 or 2, not ${type}`);
      const window = this.#environment.keys.allocWindow(pd, type);
      return { mw: window.handle, rkey: window.key };
    },
    deallocMw: ({ mw }) => {
      this.#environment.keys.freeWindow(mw);
      return {};
    },
    createCq: ({ memory }) => {
      const cq = this.#nextHandle++;
      const ring = new CompletionRing(this.#memory(memory));
      const { host } = this.#environment;
      const raise = (type: number, id: number) => host.raise(type, id);
      this.#cqs.add(cq, new NicCompletionQueue(cq, ring, raise, (broken) => this.#onCqOverrun(broken)));
      return { cq };
    },
    resizeCq: ({ cq, memory }) => {
      this.#cqs.get(cq).resize(new CompletionRing(this.#memory(memory)));
      return {};
    },
    destroyCq: ({ cq }) => {
      if (this.#cqs.get(cq).users > 0) throw new RoceError('ERR_ROCE_BUSY', 'queue pairs still complete into this CQ');
      this.#cqs.remove(cq);
      return {};
    },
    createSrq: ({ pd, memory }) => {
      const domain = this.#pds.get(pd);
      const srq = this.#nextHandle++;
      const ring = new RecvQueue(this.#memory(memory));
      const { host } = this.#environment;
      this.#srqs.add(srq, new NicSharedReceiveQueue(srq, pd, ring, (type, id) => host.raise(type, id)));
      domain.users++;
      return { srq };
    },
    modifySrq: ({ srq, limit }) => {
      this.#srqs.get(srq).limit = limit;
      return {};
    },
    resizeSrq: ({ srq, memory }) => {
      this.#srqs.get(srq).resize(new RecvQueue(this.#memory(memory)));
      return {};
    },
    querySrq: ({ srq }) => ({ limit: this.#srqs.get(srq).limit }),
    destroySrq: ({ srq }) => {
      const { users, pd } = this.#srqs.get(srq);
      if (users > 0) throw new RoceError('ERR_ROCE_BUSY', 'queue pairs still receive from this SRQ');
      this.#srqs.remove(srq);
      this.#pds.get(pd).users--;
      return {};
    },
    createQp: (args) => this.#createQp(args),
    modifyQp: (args) => {
      const qp = this.#queuePair(args.qpn);
      if ((args.mask & QP_ATTR_STATE) === 0) args.state = qp.attributes.state;
      qp.modify(args.mask, args);
      return {};
    },
    queryQp: ({ qpn }) => {
      const { attributes, nextPsns, isDraining, peer, rate } = this.#queuePair(qpn);
      const now = this.#nowNs;
      return {
        ...attributes,
        ...nextPsns,
        curState: attributes.state,
        sqDraining: isDraining ? 1 : 0,
        sourcePort: peer.sourcePort,
        remoteSourcePort: peer.remoteSourcePort,
        rateBps: rate.rateBps(now),
        targetRateBps: rate.targetRateBps(now),
        windowBytes: rate.windowBytes(now),
        alpha: rate.alpha(now),
      };
    },
    settleQp: ({ qpn }) => ({ owed: Number(this.#queuePair(qpn).settle()) }),
    destroyQp: ({ qpn }) => {
      this.#destroyQp(this.#queuePair(qpn));
      return {};
    },
    watchQp: ({ qpn, memory }) => {
      this.#queuePair(qpn).watch(this.#memory(memory));
      return {};
    },
    inspectQp: ({ qpn }) => this.#queuePair(qpn).progress,
    createAh: ({ pd, remoteGid, remoteUdpPort, dscp }) => {
      const domain = this.#pds.get(pd);
      const ah = this.#nextHandle++;
      const address = { remoteGid, remoteUdpPort, dscp, ecn: 0 };
      checkAttributes(address, QP_ATTR_AV);
      this.#ahs.add(ah, { pd, path: this.#environment.paths.pathTo(address, datagramSourcePort(ah)) });
      domain.users++;
      return { ah };
    },
    destroyAh: ({ ah }) => {
      const { pd } = this.#ahs.get(ah);
      this.#ahs.remove(ah);
      this.#pds.get(pd).users--;
      return {};
    },
  };

  #queuePair(qpn: number): NicQueuePair {
    const qp = this.#environment.queuePairs.get(qpn);
    if (qp === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `no queue pair with QPN ${qpn}`);
    return qp;
  }

  #memory(id: number): ArrayBufferLike {
    const memory = this.#environment.memory(id);
    if (memory === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', 'the NIC cannot reach this memory');
    return memory;
  }

  #register(
    { pd, memory, offsetBytes, lengthBytes, iova, access }: CommandArgs<'regMr'>,
    key?: number,
  ): NicMemoryRegion {
    this.#pds.get(pd);
    const { keys, foreignMemory } = this.#environment;
    const high = Number(iova >> 32n);
    const low = Number(iova & 0xffffffffn);
    const foreign = foreignMemory(memory);
    return foreign === undefined
      ? keys.register(pd, this.#attached(memory, offsetBytes, lengthBytes), high, low, access, key)
      : keys.registerForeign(pd, { memory: foreign, address: offsetBytes, lengthBytes }, high, low, access, key);
  }

  #attached(id: number, offsetBytes: number, lengthBytes: number): Uint8Array {
    const memory = this.#environment.regionMemory(id) ?? this.#memory(id);
    if (lengthBytes > memory.byteLength || offsetBytes > memory.byteLength - lengthBytes) {
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', 'the region reaches beyond its buffer');
    }
    return new Uint8Array(memory, offsetBytes, lengthBytes);
  }

  #createQp(args: CommandArgs<'createQp'>): CommandResult<'createQp'> {
    const pd = this.#pds.get(args.pd);
    const sendCq = this.#cqs.get(args.sendCq);
    const recvCq = this.#cqs.get(args.recvCq);
    const srq = args.srq === 0 ? undefined : this.#srqs.get(args.srq);
    if (srq !== undefined && srq.pd !== args.pd) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'the SRQ belongs to another protection domain');
    }
    const receives = srq ?? new OwnReceives(new RecvQueue(this.#memory(args.rqMemory)));
    const sendQueue = new SendQueue(this.#memory(args.sqMemory));
    const { host, newQpn, queuePairs } = this.#environment;
    const { create, fixedQpn } = queuePairType(args.type);
    const qpn = fixedQpn ?? newQpn();
    if (queuePairs.has(qpn)) throw new RoceError('ERR_ROCE_BUSY', `QP${qpn} exists already: a device has one`);
    const qp = create({
      host,
      qpn,
      pd: args.pd,
      sendCq,
      recvCq,
      receives,
      sendQueue,
      signalAll: args.signalAll !== 0,
      attributes: initialAttributes(),
    });
    queuePairs.set(qpn, qp);
    this.#parts.set(qp, { pd, sendCq, recvCq, srq });
    pd.users++;
    sendCq.users++;
    recvCq.users++;
    if (srq !== undefined) srq.users++;
    return { qpn };
  }

  #destroyQp(qp: NicQueuePair): void {
    const { queuePairs, forget } = this.#environment;
    qp.destroy();
    forget(qp);
    queuePairs.delete(qp.qpn);
    const { pd, sendCq, recvCq, srq } = this.#parts.get(qp)!;
    this.#parts.delete(qp);
    pd.users--;
    sendCq.users--;
    recvCq.users--;
    if (srq !== undefined) srq.users--;
  }

  /** A full CQ loses completions: every QP that uses it stops. */
  #onCqOverrun(cq: NicCompletionQueue): void {
    for (const qp of this.#environment.queuePairs.values()) {
      const { sendCq, recvCq } = this.#parts.get(qp)!;
      if (sendCq !== cq && recvCq !== cq) continue;
      if (qp.attributes.state !== QPS_ERR && qp.attributes.state !== QPS_RESET) qp.enterError();
    }
  }
}

function queuePairType(number: number): QueuePairType {
  const type = QUEUE_PAIR_TYPES.get(number);
  if (type === undefined) {
    const known = Object.keys(QP_TYPES).join(', ');
    throw new RoceError('ERR_ROCE_UNSUPPORTED', `QP type ${number} is not supported`, `supported types: ${known}`);
  }
  return type;
}
