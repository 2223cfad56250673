/** What a run reports: the document of `rocev2 sim run --json`. */

/** One flow. Rates and counts are those after the warm-up. */
export interface FlowResult {
  /** As planned, from 0. */
  readonly id: number;
  /** Host that had the data. */
  readonly from: string;
  /** Host the data went to. */
  readonly to: string;
  /** Virtual time of the first message. */
  readonly startNs: number;
  /**
   * Payload of the messages completed since the warm-up, over the time from the last completion before to the last one.
   */
  readonly goodputBps: number;
  /** Payload of completed messages, warm-up included. */
  readonly bytes: number;
  /** Data packets retransmitted since the warm-up. */
  readonly retransmittedPackets: number;
  /** Congestion notifications that reached the sender since the warm-up. */
  readonly cnps: number;
  /** From the start to the last completion; null for flows that did not end. */
  readonly completionNs: number | null;
  /** The status of a work request that failed, or null. */
  readonly failure: string | null;
}

/** An egress queue, sampled since the warm-up; counts are of the same time. */
export interface QueueResult {
  /** `s0>h2`: of s0, towards h2. */
  readonly port: string;
  /** Mean of the samples. */
  readonly meanBytes: number;
  /** Median of the samples. */
  readonly p50Bytes: number;
  /** 99th percentile of the samples. */
  readonly p99Bytes: number;
  /** Largest sample. */
  readonly maxBytes: number;
  /** Packets that left with a mark. */
  readonly markedPackets: number;
  /** Packets dropped for lack of buffer, or by a fault rule. */
  readonly droppedPackets: number;
  /** Frames by which the port paused its neighbour. */
  readonly pauseFrames: number;
  /** Frames by which its neighbour paused the port. */
  readonly receivedPauseFrames: number;
  /** Share of the link's bits that was used. */
  readonly utilization: number;
}

/** The shared packet memory of a switch: its size, and the maximum in use during the run. */
export interface BufferResult {
  /** Name of the switch. */
  readonly switch: string;
  /** Size of the shared part. */
  readonly sharedBytes: number;
  /** The most of it that was in use. */
  readonly sharedMaxBytes: number;
  /** Size of the headroom pool. */
  readonly headroomBytes: number;
  /** The most of it that was in use. */
  readonly headroomMaxBytes: number;
}

/**
 * Completion times of flows that end. Percentiles count the time so far of flows that have not ended, so that they are
 * bounds from below where there are such.
 */
export interface CompletionResult {
  /** Flows that ended. */
  readonly count: number;
  /** Flows that had begun and not ended when the run did. */
  readonly unfinished: number;
  /** Median; null when none ended. */
  readonly p50Ns: number | null;
  /** 90th percentile; null when none ended. */
  readonly p90Ns: number | null;
  /** 99th percentile; null when none ended. */
  readonly p99Ns: number | null;
}

/**
 * Flows of similar size: how much longer they took than they would have taken alone, see slowdown.ts. Parts have equal
 * numbers of flows.
 */
export interface SlowdownResult {
  /** Size of the largest flow of this part. */
  readonly bytesMax: number;
  /** Flows of this part, unfinished ones included. */
  readonly count: number;
  /** Of these, flows that had not ended when the run did; they count with the time so far. */
  readonly unfinished: number;
  /** Median of completion time over the time in an empty network, at least 1. */
  readonly p50: number;
  /** 95th percentile. */
  readonly p95: number;
  /** 99th percentile. */
  readonly p99: number;
}

/** The run in numbers; since the warm-up, unless it says otherwise. */
export interface Summary {
  /** All flows without end together; without such flows all bytes from the first start to the last completion. */
  readonly goodputBps: number;
  /** Goodput over the payload capacity of the links between the senders and the receivers, at most 1. */
  readonly efficiency: number;
  /**
   * Efficiency by the closed form of the recovery scheme; null where there is none. It exists for one WRITE or SEND
   * flow without end and without rate control, and a rule that drops its packets regularly or at random.
   */
  readonly theoreticalEfficiency: number | null;
  /** Of the goodput of flows without end, or of all. */
  readonly jain: number;
  /** Of the slowest flow. */
  readonly minGoodputBps: number;
  /** Of the fastest flow. */
  readonly maxGoodputBps: number;
  /** Congestion notifications that reached senders. */
  readonly cnps: number;
  /** By all switches. */
  readonly markedPackets: number;
  /** By switches and by hosts. */
  readonly droppedPackets: number;
  /** Of all switches. */
  readonly pauseFrames: number;
  /** Data packets retransmitted, by all flows. */
  readonly retransmittedPackets: number;
  /** Flows with a work request that failed. */
  readonly failedFlows: number;
  /** Of the fullest egress queue by mean. */
  readonly queueMeanBytes: number;
  /** 99th percentile of the same queue. */
  readonly queueP99Bytes: number;
  /** Flows that ended, of all sizes. */
  readonly completions: CompletionResult;
  /** Flows below 100 KB, as in the flow completion experiments. */
  readonly smallCompletions: CompletionResult;
}

/** Result of one assertion of the scenario. */
export interface AssertionResult {
  /** Its name in the scenario. */
  readonly name: string;
  /** Whether it held. */
  readonly ok: boolean;
  /** The value found, and the expected one. */
  readonly detail: string;
}

/** One point every `sample` of virtual time. */
export interface Series {
  /** Virtual time of each sample. */
  readonly timeNs: readonly number[];
  /** By queue name; those that ever held something. */
  readonly queueBytes: Readonly<Record<string, readonly number[]>>;
  /** Payload sent for the first time, per flow, by flow id. */
  readonly rateBps: readonly (readonly number[])[];
  /** Payload of data packets that arrived, of retransmissions as well, by receiving host. */
  readonly receivedBps: Readonly<Record<string, readonly number[]>>;
  /** CNPs received by all hosts in each interval. */
  readonly cnps: readonly number[];
  /** Pause frames sent by all switches in each interval. */
  readonly pauseFrames: readonly number[];
}

/** The result of one run: the document of `rocev2 sim run --json`. */
export interface ScenarioResult {
  /** Its name. */
  readonly scenario: string;
  /** What it shows, in a line. */
  readonly title: string;
  /** The seed of all random streams; the same seed gives the same `traceHash`. */
  readonly seed: number;
  /** Fingerprint of every packet sent and received, in hexadecimal. */
  readonly traceHash: string;
  /** Virtual time simulated. */
  readonly virtualSeconds: number;
  /** Time the run took. */
  readonly wallSeconds: number;
  /** Departures and arrivals of frames at nodes. */
  readonly packetEvents: number;
  /** `packetEvents` over `wallSeconds`. */
  readonly eventsPerSecond: number;
  /** The run in numbers. */
  readonly summary: Summary;
  /** By flow id. */
  readonly flows: readonly FlowResult[];
  /** Egress queues of all switches. */
  readonly queues: readonly QueueResult[];
  /** Of switches that have one. */
  readonly buffers: readonly BufferResult[];
  /** Combinations of options that let a part of the network ignore what another one relies on, with what to change. */
  readonly warnings: readonly string[];
  /** In the order of the scenario file. */
  readonly assertions: readonly AssertionResult[];
  /** Samples over time, for plots. */
  readonly series: Series;
  /** By size, ascending; empty where no flow ends. */
  readonly slowdowns: readonly SlowdownResult[];
}
