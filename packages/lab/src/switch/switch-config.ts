/**
 * Configuration of a switch, as one plain object that could be in a JSON file. Everything is optional: by default the
 * switch forwards, queues a bounded number of frames, and neither marks nor pauses. Sources of the defaults:
 * docs/switch.md.
 */

/** When a packet is marked, by its egress queue. */
export type MarkingConfig = RedConfig | PiConfig;

interface MarkingSite {
  /**
   * `dequeue` (default): decided when the packet leaves, on the queue that remains, as DCQCN expects. `enqueue`:
   * decided on arrival, on the queue found; the mark is then older by the time in the queue.
   */
  readonly at?: 'dequeue' | 'enqueue' | undefined;
  /** Priorities whose packets are marked. Default 0 to 5: not CNPs and network control. */
  readonly priorities?: readonly number[] | undefined;
  /** Drop packets that cannot be marked (Not-ECT) when a mark is due (RFC 3168 §5). Default false. */
  readonly dropNotEct?: boolean | undefined;
}

/** Probability 0 up to Kmin, rising to Pmax at Kmax, 1 beyond; on the instantaneous queue, no averaging. */
export interface RedConfig extends MarkingSite {
  /** Which marker. */
  readonly kind: 'red';
  /** No marking up to here. */
  readonly kminBytes: number;
  /** Every packet is marked above this; at least `kminBytes`. */
  readonly kmaxBytes: number;
  /** 0..1 */
  readonly pmax: number;
}

/** Proportional-integral: dp/dt = K1 de/dt + K2 e, e = queue - reference (CoNEXT'16 §5). */
export interface PiConfig extends MarkingSite {
  /** Which marker. */
  readonly kind: 'pi';
  /** The queue to hold. */
  readonly referenceBytes: number;
  /** K1. */
  readonly proportionalPerByte: number;
  /** K2. */
  readonly integralPerByteSecond: number;
}

/** The shared packet memory and its three pools. Given, it replaces `queuePackets` as the rule of admission. */
export interface BufferConfig {
  /** All packet memory, B. Default 12,000,000. */
  readonly totalBytes?: number | undefined;
  /** Limit of all headroom together. Default: the sum of all headrooms divided by `headroomOversubscription`. */
  readonly headroomPoolBytes?: number | undefined;
  /** Default 1: every headroom is fully backed. */
  readonly headroomOversubscription?: number | undefined;
  /** P_in: what everything outside the headroom may take. Default B less the headroom pool. */
  readonly ingressPoolBytes?: number | undefined;
  /** P_lossy: what lossy packets may take, at most P_in. Default P_in less all reserves. */
  readonly egressLossyPoolBytes?: number | undefined;
  /** A lossless ingress queue may hold alpha times the free shared memory before it pauses its sender. Default 1/8. */
  readonly losslessAlpha?: number | undefined;
  /** A lossy egress queue may hold alpha times the free part of its pool. Default 8. */
  readonly lossyAlpha?: number | undefined;
  /** Kept for every lossless ingress queue. Default 4096. */
  readonly reservedBytes?: number | undefined;
  /** How far below the threshold a paused ingress queue must fall before its sender may continue. Default 3072. */
  readonly xonOffsetBytes?: number | undefined;
}

/** Priority-based flow control (IEEE 802.1Qbb). */
export interface PfcConfig {
  /** Lossless priorities. */
  readonly priorities: readonly number[];
  /** Pause time in our frames, refreshed at half of it. 1..65535, default 65535. */
  readonly quanta?: number | undefined;
  /** Left out: no watchdog. */
  readonly watchdog?: WatchdogConfig | undefined;
}

/** A queue that is paused for longer than any congestion explains belongs to a broken peer (SONiC pfcwd). */
export interface WatchdogConfig {
  /** Paused without a gap for this long: a storm. Default 200 ms. */
  readonly detectNs?: number | undefined;
  /** No pause frame for this long: back to normal. Default 200 ms. */
  readonly restoreNs?: number | undefined;
  /** Queues are looked at this often. Default 200 ms; at most the two others. */
  readonly pollNs?: number | undefined;
  /**
   * In a storm: `drop` (default) all frames of and for the queue; `forward` as if there were no pause;
   * `alert` only counts.
   */
  readonly action?: 'drop' | 'forward' | 'alert' | undefined;
}

/** Which of the eight priorities a frame belongs to. */
export interface ClassificationConfig {
  /**
   * `dscp` (default): by DSCP, frames without IP by their 802.1Q tag. `pcp`: by the tag alone. Without a tag: priority
   * 0.
   */
  readonly trust?: 'dscp' | 'pcp' | undefined;
  /** Priority of each DSCP that does not go to DSCP >> 3. */
  readonly dscpToPriority?: Readonly<Record<number, number>> | undefined;
}

/** Order in which the priorities of a port send. */
export interface SchedulingConfig {
  /** Priorities served first, the highest before all others. Default 6 and 7. */
  readonly strict?: readonly number[] | undefined;
  /** DWRR weights of the rest, one for each of the eight priorities, integers from 1 up. Default all 1. */
  readonly weights?: readonly number[] | undefined;
}

/**
 * Frames for a destination leave by one of several ports, chosen by a hash over the flow. Routes go before learnt
 * addresses.
 */
export interface RouteConfig {
  /** A MAC address, an IP address, or a prefix such as `10.1.0.0/16` (the longest one wins). */
  readonly to: string;
  /** Names of ports. */
  readonly ports: readonly string[];
}

/** In-band telemetry for packets that ask for it: see packet/int-trailer.ts. */
export interface IntConfig {
  /** Records and digests are written. Default true. */
  readonly isOn?: boolean | undefined;
  /**
   * T of PINT: the longest round trip of an idle network, over which the utilization of a port is averaged. Default 12
   * us.
   */
  readonly baseRttNs?: number | undefined;
}

/** Trimming of data packets whose queue is full: see frame-trimmer.ts. */
export interface TrimConfig {
  /** Priority of trimmed packets, whose DSCP is eight times that. It should be strict. Default 6. */
  readonly priority?: number | undefined;
}

/** Settings of one port. */
export interface SwitchPortConfig {
  /**
   * Link rate. The driver keeps to it; the switch needs it for the length of pauses. Default: without limit, and then
   * no PFC.
   */
  readonly rateBps?: number | undefined;
  /** For the default headroom. Default 5 m. */
  readonly cableMetres?: number | undefined;
  /**
   * What each lossless ingress queue of this port may take after it sent its XOFF. Default: by rate and cable, see
   * `headroomBytes()`.
   */
  readonly headroomBytes?: number | undefined;
  /** Instead of the switch's `ecn`; null: none at this port. */
  readonly ecn?: MarkingConfig | null | undefined;
}

/** Settings of a switch, all optional; quantities in bytes, bits/s and nanoseconds. */
export interface SwitchConfig {
  /** Frames that may wait at one egress, where there is no `buffer`. Default 1024. */
  readonly queuePackets?: number | undefined;
  /** Frames in the whole switch, queued or taken and not yet released. Default 4096; with `buffer` 1,048,576. */
  readonly bufferPackets?: number | undefined;
  /** Addresses the switch can learn, 0: none. Default 4096. */
  readonly macTableEntries?: number | undefined;
  /** How long a silent station is remembered. Default 300 s. */
  readonly macAgeNs?: number | undefined;
  /** The longest frame without check sequence. Default 9234: 9216 with Ethernet header and tag. */
  readonly frameBytesMax?: number | undefined;
  /** Left out: by DSCP. */
  readonly classification?: ClassificationConfig | undefined;
  /** Left out: priorities 6 and 7 strict, the rest in equal shares. */
  readonly scheduling?: SchedulingConfig | undefined;
  /** Default where there is `pfc`: all its defaults. */
  readonly buffer?: BufferConfig | undefined;
  /** Left out: no PFC; pause frames are dropped. */
  readonly pfc?: PfcConfig | undefined;
  /** Left out: nothing is marked. */
  readonly ecn?: MarkingConfig | undefined;
  /** In-band telemetry at ports whose rate is known. Left out: all its defaults. */
  readonly int?: IntConfig | undefined;
  /** Left out: packets whose queue is full are dropped. */
  readonly trim?: TrimConfig | undefined;
  /** Left out: the switch learns where stations are. */
  readonly routes?: readonly RouteConfig[] | undefined;
  /** Frames without a route or learnt port, and group addresses: flooded to all ports (default), or to none. */
  readonly flood?: boolean | undefined;
  /** Makes the hash over flows differ from other switches'. Default 0. */
  readonly hashSeed?: number | undefined;
  /** Defaults for all ports. */
  readonly portDefaults?: SwitchPortConfig | undefined;
  /** By port name. */
  readonly portConfig?: Readonly<Record<string, SwitchPortConfig>> | undefined;
}
