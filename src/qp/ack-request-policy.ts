/**
 * Which data packets request an acknowledgement (IBTA vol. 1 §9.7.5.1.1). The standard leaves this to the requester,
 * except that a packet must request one before the requester waits. Each acknowledgement wakes this side up, which
 * costs more than several packets.
 */

/** Inside a message one is requested for every quarter of a window, so that the window keeps moving. */
const REQUESTS_PER_WINDOW = 4;
/** At least one packet in this many requests one. */
const REQUEST_EVERY_PACKETS_MAX = 128;

/** The policy of one requester. The requester reports all events that it depends on. */
export class AckRequestPolicy {
  /** The rate control limits the bytes in flight: its window only moves by acknowledgements. */
  limitsBytes = false;
  /** The rate control paces packets. */
  isPaced = false;
  /** Data packets ask for in-band telemetry, which acknowledgements bring. */
  wantsTelemetry = false;
  /** The recovery scheme retransmits single packets: only the answer to each of them says whether it has arrived. */
  repairsSinglePackets = false;
  #isForced = false;
  #packetsSinceRequest = 0;
  #inFlightPackets = 0;
  #windowPackets = 0;
  #isArbitrated = false;

  reset(): void {
    this.#isForced = false;
    this.#packetsSinceRequest = 0;
  }

  /**
   * A timeout has passed: the next packet requests an acknowledgement. The last packet, which would have requested it,
   * may be lost each time in the same burst.
   */
  force(): void {
    this.#isForced = true;
  }

  /**
   * Of `windowPackets` packets, `inFlightPackets` are in flight before the next one. `isArbitrated`: the window is a
   * share that the send arbiter grants, and other queue pairs wait for it.
   */
  onWindow(inFlightPackets: number, windowPackets: number, isArbitrated: boolean): void {
    this.#inFlightPackets = inFlightPackets;
    this.#windowPackets = windowPackets;
    this.#isArbitrated = isArbitrated;
  }

  /** The next data packet is about to be sent. Returns whether it requests an acknowledgement. */
  decide(isLastOfMessage: boolean, isRetransmission: boolean, isRttSampleDue: boolean): boolean {
    this.#packetsSinceRequest++;
    const requests =
      isLastOfMessage ||
      isRttSampleDue ||
      this.#isForced ||
      this.limitsBytes ||
      this.wantsTelemetry ||
      (this.#isArbitrated && this.isPaced) ||
      (isRetransmission && this.repairsSinglePackets) ||
      this.#inFlightPackets + 1 >= this.#windowPackets ||
      this.#packetsSinceRequest >= Math.min(this.#windowPackets / REQUESTS_PER_WINDOW, REQUEST_EVERY_PACKETS_MAX);
    this.#isForced = false;
    if (requests) this.#packetsSinceRequest = 0;
    return requests;
  }
}
