/** What a run reports: the document of `rocev2 sim run --json`. */

export interface FlowResult {
  readonly id: number;
  readonly from: string;
  readonly to: string;
  readonly startNs: number;
  /** Payload of the messages completed since the warm-up, over the time from the last completion before to the last one. */
  readonly goodputBps: number;
  /** Payload of completed messages, warm-up included. */
  readonly bytes: number;
  /** Both since the warm-up. */
  readonly retransmittedPackets: number;
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
  readonly meanBytes: number;
  readonly p50Bytes: number;
  readonly p99Bytes: number;
  readonly maxBytes: number;
  readonly markedPackets: number;
  readonly droppedPackets: number;
  /** Frames by which the port paused its neighbour, and by which its neighbour paused it. */
  readonly pauseFrames: number;
  readonly receivedPauseFrames: number;
  /** Share of the link's bits that was used. */
  readonly utilization: number;
}

/** The shared packet memory of a switch: its size, and what was in use at most at any time of the run. */
export interface BufferResult {
  readonly switch: string;
  readonly sharedBytes: number;
  readonly sharedMaxBytes: number;
  readonly headroomBytes: number;
  readonly headroomMaxBytes: number;
}

/** Completion times of flows that ended. */
export interface CompletionResult {
  readonly count: number;
  readonly p50Ns: number | null;
  readonly p90Ns: number | null;
  readonly p99Ns: number | null;
}

export interface Summary {
  /** All flows without end together; without such flows all bytes from the first start to the last completion. */
  readonly goodputBps: number;
  /** Goodput over what payload alone can have of a host's link. */
  readonly efficiency: number;
  /** Of the goodput of flows without end, or of all. */
  readonly jain: number;
  readonly minGoodputBps: number;
  readonly maxGoodputBps: number;
  readonly cnps: number;
  readonly markedPackets: number;
  /** By switches and by hosts. */
  readonly droppedPackets: number;
  /** Of all switches. */
  readonly pauseFrames: number;
  readonly retransmittedPackets: number;
  readonly failedFlows: number;
  /** Of the fullest egress queue by mean. */
  readonly queueMeanBytes: number;
  readonly queueP99Bytes: number;
  readonly completions: CompletionResult;
  /** Flows below 100 KB, as in the flow completion experiments. */
  readonly smallCompletions: CompletionResult;
}

export interface AssertionResult {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** One point every `sample` of virtual time. */
export interface Series {
  readonly timeNs: readonly number[];
  /** By queue name; those that ever held something. */
  readonly queueBytes: Readonly<Record<string, readonly number[]>>;
  /** Payload sent for the first time, per flow, by flow id. */
  readonly rateBps: readonly (readonly number[])[];
  /** CNPs received by all hosts, and pause frames sent by all switches, in each interval. */
  readonly cnps: readonly number[];
  readonly pauseFrames: readonly number[];
}

export interface ScenarioResult {
  readonly scenario: string;
  readonly title: string;
  readonly seed: number;
  readonly traceHash: string;
  readonly virtualSeconds: number;
  readonly wallSeconds: number;
  /** Departures and arrivals of frames at nodes. */
  readonly packetEvents: number;
  readonly eventsPerSecond: number;
  readonly summary: Summary;
  readonly flows: readonly FlowResult[];
  readonly queues: readonly QueueResult[];
  /** Of switches that have one. */
  readonly buffers: readonly BufferResult[];
  readonly assertions: readonly AssertionResult[];
  readonly series: Series;
}
