/**
 * What a seed means: link, faults, queue pairs, and for each direction of each connection a list of operations with the memory they
 * touch. Pure data, made before anything runs, so that the expected outcome can be computed without the code under test.
 */

import { SeededRandom } from '../../../../src/core/random.js';
import type { RateControlOptions } from '../../../../src/dcqcn/rate-controls.js';
import { type RecoveryName, recoveryNames } from '../../../../src/retransmit/recovery-schemes.js';
import { Dice, fillRandom } from '../../../../test/support/dice.js';
import { Arena, type Range } from './arena.js';

export type Side = 'a' | 'b';

export type OperationKind =
  | 'SEND'
  | 'SEND_WITH_IMM'
  | 'SEND_WITH_INV'
  | 'RDMA_WRITE'
  | 'RDMA_WRITE_WITH_IMM'
  | 'RDMA_READ'
  | 'ATOMIC_FETCH_AND_ADD'
  | 'ATOMIC_CMP_AND_SWP'
  | 'ATOMIC_WRITE'
  | 'FLUSH';

export interface Operation {
  readonly kind: OperationKind;
  readonly bytes: number;
  /** Gather list of SENDs and WRITEs, scatter list of READs and atomics. */
  readonly local: readonly Range[];
  /** Sent inline instead of from `local`. */
  readonly inline: Uint8Array | undefined;
  /** In the peer's region: WRITE, READ, atomics. */
  readonly remote: Range | undefined;
  readonly immediate: number;
  /** SEND_WITH_INV: which of the flow's windows dies. */
  readonly window: number;
  /** FETCH_ADD: the addend. */
  readonly add: bigint;
  readonly compare: bigint;
  readonly swap: bigint;
  readonly signaled: boolean;
  readonly fence: boolean;
  readonly solicited: boolean;
}

/** One direction of one connection. */
export interface FlowPlan {
  readonly from: Side;
  readonly to: Side;
  readonly qp: number;
  readonly operations: readonly Operation[];
  /** One for each operation that takes a receive, in order. */
  readonly receives: ReadonlyArray<readonly Range[]>;
  /** In the receiver's region, zero at first; this flow alone compares and swaps it. */
  readonly swapWord: Range;
  /** Ranges of the receiver that type 2 windows are bound to before the traffic starts. */
  readonly windows: readonly Range[];
  /** Operations are posted in bursts of this many, this far apart. */
  readonly burst: number;
  readonly burstGapNs: number;
  /** How long the receiver takes before it posts each receive; 0: all are posted as early as possible. */
  readonly receiveGapNs: number;
}

export interface QpPlan {
  readonly startPsnA: number;
  readonly startPsnB: number;
  readonly maxSendWr: number;
  readonly maxRecvWr: number;
  readonly maxSge: number;
  readonly maxInlineBytes: number;
  readonly signalAll: boolean;
  readonly maxRdAtomic: number;
  readonly minRnrTimer: number;
  /** By side. */
  readonly rateControl: Readonly<Record<Side, RateControlOptions>>;
}

export interface Plan {
  readonly seed: number;
  readonly recovery: RecoveryName;
  readonly mtu: number;
  readonly addresses: readonly [string, string];
  readonly rateBps: number;
  readonly delayNs: number;
  readonly faults: string | undefined;
  readonly inflightPackets: number;
  readonly timeout: number;
  readonly qps: readonly QpPlan[];
  readonly flows: readonly FlowPlan[];
  readonly memoryBytes: Readonly<Record<Side, number>>;
  /** Words of each host that any flow may add to. */
  readonly counterWords: Readonly<Record<Side, readonly Range[]>>;
}

/** Request and response packets that carry payload, all flows together: bounds the time of a seed. */
const PAYLOAD_PACKETS_MAX = 30_000;
/** Go-back-0 restarts messages: longer ones do not finish under loss. */
const GO_BACK_0_PACKETS_MAX = 24;

export function planSeed(seed: number): Plan {
  const random = new SeededRandom(seed);
  const dice = new Dice(random.stream('plan'));
  const paces = new Dice(random.stream('rate control'));
  const recovery = dice.pick(recoveryNames());
  const mtu = dice.pick([256, 512, 1024, 2048, 4096]);
  const rateBps = dice.logUniform(1e9, 100e9);
  const delayNs = Math.floor(dice.logUniform(100, 50_000));
  const inflightPackets = dice.pick([2, 3, 8, 32, 128, 128, 300, 1500]);
  const qps = Array.from(
    {
      length: dice.weighted([
        [4, 1],
        [2, 2],
        [1, 3],
        [1, 4],
      ] as const),
    },
    () => planQp(dice, paces, rateBps),
  );
  const arenas = { a: new Arena(dice), b: new Arena(dice) };
  const words = (side: Side) => Array.from({ length: 2 }, () => arenas[side].takeWord());
  const counterWords = { a: words('a'), b: words('b') };
  const budget = new PacketBudget(Math.floor(dice.logUniform(300, PAYLOAD_PACKETS_MAX)), recovery, mtu);
  const flows: FlowPlan[] = [];
  qps.forEach((qp, index) => {
    const directions = dice.weighted([
      [6, ['a', 'b']],
      [1, ['a']],
      [1, ['b']],
    ] as Array<[number, Side[]]>);
    for (const from of directions) {
      const content = new Dice(random.stream(`flow ${index} ${from}`));
      flows.push(new FlowPlanner(content, from, index, qp, arenas, counterWords, budget).plan());
    }
  });
  return {
    seed,
    recovery,
    mtu,
    addresses: dice.chance(0.5) ? ['192.0.2.1', '192.0.2.2'] : ['2001:db8::1', '2001:db8::2'],
    rateBps,
    delayNs,
    faults: planFaults(dice, recovery),
    inflightPackets,
    timeout: ackTimeoutCode(dice, recovery, rateBps, delayNs, mtu, inflightPackets, qps.length),
    qps,
    flows,
    memoryBytes: { a: arenas.a.bytes, b: arenas.b.bytes },
    counterWords,
  };
}

/** The same plan with credit by the receiver (RCCC) in the place of all rate controls. Plans of their own draw none: they would be other plans. */
export function withCredit(plan: Plan): Plan {
  const { mtu, rateBps, delayNs, qps } = plan;
  const rccc: RateControlOptions = {
    name: 'rccc',
    linkRateBps: Math.max(rateBps, 1e9),
    baseRttNs: 2 * delayNs + 1000,
    packetBytes: mtu,
  };
  return { ...plan, qps: qps.map((qp) => ({ ...qp, rateControl: { a: rccc, b: rccc } })) };
}

/**
 * The same plan with FLUSH and ATOMIC WRITE among the operations of each flow. A plan of a seed has none, so that a
 * seed keeps its plan.
 */
export function withPlacement(plan: Plan): Plan {
  const dice = new Dice(new SeededRandom(plan.seed).stream('placement'));
  const memoryBytes = { ...plan.memoryBytes };
  const word = (side: Side): Range => {
    const offset = (memoryBytes[side] + 7) & ~7;
    memoryBytes[side] = offset + 16;
    return { offset, length: 8 };
  };
  const none = { inline: undefined, immediate: 0, window: -1, add: 0n, compare: 0n, swap: 0n };
  const flows = plan.flows.map((flow) => {
    const target = word(flow.to);
    const operations = flow.operations.flatMap((operation): Operation[] => {
      const common = { ...none, signaled: true, fence: dice.chance(0.1), solicited: false };
      const added: Operation[] = [];
      if (dice.chance(0.4)) {
        added.push({ ...common, kind: 'ATOMIC_WRITE', bytes: 8, local: [word(flow.from)], remote: target });
      }
      if (dice.chance(0.4)) {
        added.push({ ...common, kind: 'FLUSH', bytes: dice.int(0, 8), local: [], remote: target });
      }
      return [...added, operation];
    });
    return { ...flow, operations };
  });
  return { ...plan, flows, memoryBytes };
}

function planQp(dice: Dice, paces: Dice, rateBps: number): QpPlan {
  const startPsn = () => (dice.chance(0.6) ? (0xffffff - dice.int(0, 200)) & 0xffffff : dice.int(0, 0xffffff));
  return {
    startPsnA: startPsn(),
    startPsnB: startPsn(),
    maxSendWr: dice.pick([1, 2, 4, 16, 128]),
    maxRecvWr: dice.pick([1, 2, 4, 16, 128]),
    maxSge: dice.int(1, 6),
    maxInlineBytes: dice.pick([0, 32, 64, 300]),
    signalAll: dice.chance(0.2),
    maxRdAtomic: dice.pick([1, 2, 4, 16]),
    minRnrTimer: dice.int(1, 14),
    rateControl: { a: planRateControl(paces, rateBps), b: planRateControl(paces, rateBps) },
  };
}

/** Half of the QPs send as fast as they can; the others wait for their pacer between packets or bursts, at rates that move or do not. */
function planRateControl(dice: Dice, rateBps: number): RateControlOptions {
  const rate = () => rateBps * dice.logUniform(0.25, 1);
  const burstBytes = dice.pick([0, 0, 3000, 20_000]);
  const linkRateBps = Math.max(rateBps, 1e9);
  const rtt = { linkRateBps, minimumRateBps: linkRateBps / 4, segmentBytes: dice.int(300, 20_000), burstBytes };
  return dice.weighted([
    [4, { name: 'none' }],
    [2, { name: 'fixed', rateBps: rate(), burstBytes }],
    [1, { name: 'dcqcn', linkRateBps: rate(), burstBytes }],
    [1, { name: 'timely', ...rtt }],
    [1, { name: 'patched-timely', ...rtt }],
  ] as Array<[number, RateControlOptions]>);
}

/** Long enough for a window of every QP in both directions to pass; sometimes twenty times that, or so short that it fires in vain. */
function ackTimeoutCode(
  dice: Dice,
  recovery: RecoveryName,
  rateBps: number,
  delayNs: number,
  mtu: number,
  inflightPackets: number,
  qps: number,
): number {
  const windowNs = (2 * Math.max(inflightPackets, 2 * qps) * (mtu + 100) * 8e9) / rateBps;
  // Go-back-0 would restart its messages for ever; the low timeout of IRN is 5/16 of this one.
  const shortest = recovery === 'go-back-0' || recovery === 'irn' ? 1.5 : 0.4;
  const patience = dice.weighted([
    [1, shortest],
    [5, 1.5],
    [2, 20],
  ]);
  const needNs = (2 * delayNs + 2 * windowNs) * patience;
  return Math.max(4, Math.ceil(Math.log2(needNs / 4096)));
}

function planFaults(dice: Dice, recovery: RecoveryName): string | undefined {
  if (dice.chance(0.1)) return undefined;
  // Restarting whole messages multiplies what a loss costs.
  const worst = recovery === 'go-back-0' ? 0.004 : 0.04;
  const rate = () => dice.logUniform(worst / 40, worst).toFixed(5);
  const kinds: ReadonlyArray<() => string> = [
    () => `random=${rate()}`,
    () => `burst=${rate()},${(0.7 + dice.int(0, 25) / 100).toFixed(2)}`,
    () => `corrupt=${rate()}`,
    () => `duplicate=${rate()}`,
    () => `reorder=${rate()},${dice.int(1, 12)}`,
    () => `ip-id-lsb=0x${dice.int(0, 255).toString(16)}`,
    () => 'opcode=ACKNOWLEDGE:once',
    () => 'opcode=RDMA_READ_REQUEST:once',
    () => 'opcode=ATOMIC_ACKNOWLEDGE:once',
  ];
  const rules = Array.from({ length: dice.int(1, 5) }, () => {
    const direction = dice.weighted([
      [3, ''],
      [1, 'a>b:'],
      [1, 'b>a:'],
    ] as const);
    return direction + dice.pick(kinds)();
  });
  return rules.join(';');
}

/** Hands out message sizes: many small, few large, and in total no more than a seed may cost. */
class PacketBudget {
  readonly #recovery: RecoveryName;
  readonly #mtu: number;
  #packets: number;

  constructor(packets: number, recovery: RecoveryName, mtu: number) {
    this.#packets = packets;
    this.#recovery = recovery;
    this.#mtu = mtu;
  }

  size(dice: Dice): number {
    const mtu = this.#mtu;
    const size = dice.weighted<() => number>([
      [1, () => 0],
      [10, () => dice.int(1, 8)],
      [20, () => dice.int(1, mtu)],
      [10, () => mtu * dice.int(1, 4)],
      [30, () => dice.int(1, 12 * mtu)],
      [8, () => dice.int(1, 64 * 1024)],
      [2, () => dice.int(1, 1024 * 1024)],
      [0.5, () => 1024 * 1024],
    ])();
    const packetsMax = this.#recovery === 'go-back-0' ? GO_BACK_0_PACKETS_MAX : 4096;
    const bytes = Math.min(size, packetsMax * mtu, Math.max(1, this.#packets) * mtu);
    this.#packets -= Math.ceil(bytes / mtu);
    return bytes;
  }
}

const KINDS: ReadonlyArray<readonly [number, OperationKind]> = [
  [4, 'SEND'],
  [2, 'SEND_WITH_IMM'],
  [1, 'SEND_WITH_INV'],
  [4, 'RDMA_WRITE'],
  [2, 'RDMA_WRITE_WITH_IMM'],
  [5, 'RDMA_READ'],
  [2, 'ATOMIC_FETCH_AND_ADD'],
  [2, 'ATOMIC_CMP_AND_SWP'],
];

class FlowPlanner {
  readonly #dice: Dice;
  readonly #from: Side;
  readonly #to: Side;
  readonly #index: number;
  readonly #qp: QpPlan;
  readonly #arenas: Record<Side, Arena>;
  readonly #counterWords: Record<Side, readonly Range[]>;
  readonly #budget: PacketBudget;
  readonly #receives: Range[][] = [];
  readonly #windows: Range[] = [];
  /** What it holds once all operations planned so far are done: see {@link FlowPlan.swapWord}. */
  #swapWordValue = 0n;
  readonly #swapWord: Range;
  /** What the last READ fetched and the last WRITE stored, for operations that use them again. */
  #lastRead: readonly Range[] | undefined;
  #lastWrite: Range | undefined;
  #unsignaled = 0;

  constructor(
    dice: Dice,
    from: Side,
    index: number,
    qp: QpPlan,
    arenas: Record<Side, Arena>,
    counterWords: Record<Side, readonly Range[]>,
    budget: PacketBudget,
  ) {
    this.#dice = dice;
    this.#from = from;
    this.#to = from === 'a' ? 'b' : 'a';
    this.#index = index;
    this.#qp = qp;
    this.#arenas = arenas;
    this.#counterWords = counterWords;
    this.#budget = budget;
    this.#swapWord = arenas[this.#to].takeWord();
  }

  plan(): FlowPlan {
    const dice = this.#dice;
    const count = dice.int(2, 32);
    const operations = Array.from({ length: count }, (_, i) => this.#operation(dice.weighted(KINDS), i === count - 1));
    return {
      from: this.#from,
      to: this.#to,
      qp: this.#index,
      operations,
      receives: this.#receives,
      swapWord: this.#swapWord,
      windows: this.#windows,
      burst: dice.pick([1, 3, 1000]),
      burstGapNs: Math.floor(dice.logUniform(10, 100_000)),
      receiveGapNs: dice.chance(0.6) ? 0 : Math.floor(dice.logUniform(1_000, 300_000)),
    };
  }

  #operation(kind: OperationKind, isLast: boolean): Operation {
    const dice = this.#dice;
    const fence = dice.chance(0.15);
    const common = { kind, fence, signaled: this.#signaled(isLast), solicited: dice.chance(0.2) };
    const none = { inline: undefined, remote: undefined, immediate: 0, window: -1, add: 0n, compare: 0n, swap: 0n };
    switch (kind) {
      case 'RDMA_READ': {
        const bytes = this.#budget.size(dice);
        const again = dice.chance(0.2) ? this.#lastWrite : undefined;
        const remote = again ?? this.#arenas[this.#to].take(bytes);
        const local = this.#arenas[this.#from].takeParts(remote.length, this.#qp.maxSge);
        this.#lastRead = local;
        return { ...none, ...common, bytes: remote.length, local, remote };
      }
      case 'ATOMIC_FETCH_AND_ADD': {
        const remote = dice.pick(this.#counterWords[this.#to]);
        return { ...none, ...common, bytes: 8, local: this.#word(), remote, add: dice.u64() };
      }
      case 'ATOMIC_CMP_AND_SWP': {
        const swap = dice.u64();
        const compare = dice.chance(0.7) ? this.#swapWordValue : dice.u64();
        if (compare === this.#swapWordValue) this.#swapWordValue = swap;
        return { ...none, ...common, bytes: 8, local: this.#word(), remote: this.#swapWord, compare, swap };
      }
      default:
        return { ...none, ...common, ...this.#data(kind, fence) };
    }
  }

  #data(
    kind: OperationKind,
    fence: boolean,
  ): Pick<Operation, 'bytes' | 'local' | 'inline' | 'remote' | 'immediate' | 'window'> {
    const dice = this.#dice;
    const inlineMax = this.#qp.maxInlineBytes;
    let local: readonly Range[] = [];
    let inline: Uint8Array | undefined;
    let bytes: number;
    if (inlineMax > 0 && dice.chance(0.15)) {
      inline = new Uint8Array(dice.int(0, inlineMax));
      fillRandom(inline, dice.source);
      bytes = inline.length;
    } else {
      // Behind a fence what an earlier READ fetched is in place, and may be passed on.
      const again = fence && dice.chance(0.5) ? this.#lastRead : undefined;
      local = again ?? this.#arenas[this.#from].takeParts(this.#budget.size(dice), this.#qp.maxSge);
      bytes = local.reduce((sum, range) => sum + range.length, 0);
    }
    const isWrite = kind === 'RDMA_WRITE' || kind === 'RDMA_WRITE_WITH_IMM';
    const remote = isWrite ? this.#arenas[this.#to].take(bytes) : undefined;
    if (isWrite) this.#lastWrite = remote;
    if (kind !== 'RDMA_WRITE') {
      const room = isWrite ? dice.int(0, 8) : bytes + dice.int(0, 100);
      this.#receives.push(this.#arenas[this.#to].takeParts(room, this.#qp.maxSge));
    }
    const window = kind === 'SEND_WITH_INV' ? this.#windows.length : -1;
    if (window >= 0) this.#windows.push(this.#arenas[this.#to].take(dice.int(1, 64)));
    return { bytes, local, inline, remote, immediate: dice.source.u32(), window };
  }

  #word(): Range[] {
    return [this.#arenas[this.#from].take(8)];
  }

  /** A queue's length of unsignaled requests would never be given back, and the last one tells that all are done. */
  #signaled(isLast: boolean): boolean {
    const must = isLast || this.#unsignaled + 1 >= this.#qp.maxSendWr / 2;
    const signaled = must || this.#dice.chance(0.6);
    this.#unsignaled = signaled ? 0 : this.#unsignaled + 1;
    return signaled;
  }
}
