/**
 * A bidirectional byte stream that outlives its connections: unacknowledged bytes are kept and retransmitted over the
 * next connection. Each side begins with how much it has received, so every byte arrives once and in order (Azure
 * storage paper §4.1: sU moves between RDMA and TCP under running traffic). A side keeps at most the smaller of both
 * windows.
 */

import type { HostTransport } from '../../cm/rdma-fallback.js';
import { checkWhole } from '../../core/arguments.js';
import type { Clock } from '../../core/clock.js';
import { withDefaults } from '../../core/defaults.js';
import { RoceError } from '../../core/errors.js';
import { PromiseMutex } from '../../core/promise-mutex.js';
import { ConnectionWatch } from '../link/connection-watch.js';
import { LatencyWindow } from '../sk/latency-window.js';
import type { SuChunk } from '../su/su-receiver.js';
import { ReplayBuffer } from './replay-buffer.js';
import type { StreamLink } from './stream-link.js';
import { STREAM_BODY_BYTES_MAX, type StreamFrame } from './su-stream-frame.js';

/** Sizes and times of a stream. All fields are optional. */
export interface StreamTerms {
  /** Bytes that are taken from the peer, or kept for it, until they are consumed; 64 KiB to 1 GiB. Default 4 MiB. */
  readonly windowBytes?: number | undefined;
  /** A silent peer is probed after this time; default 1 s. */
  readonly idleNs?: number | undefined;
  /** A connection whose peer is silent for this long is given up; default 3 s. */
  readonly silenceNs?: number | undefined;
}

export interface PeerState {
  readonly received: number;
  readonly consumed: number;
  readonly windowBytes: number;
}

const DEFAULTS = { windowBytes: 4 << 20, idleNs: 1e9, silenceNs: 3e9 };
/** One is on its way while the next is made. */
const FRAMES_UNDER_WAY = 2;
const FAREWELL_NS = 100e6;
const ACKS_PER_WINDOW = 4;

const WINDOW_BYTES_MIN = 64 << 10;
const WINDOW_BYTES_MAX = 1 << 30;

export function checkStreamTerms({ windowBytes }: StreamTerms): void {
  if (windowBytes !== undefined) checkWhole('windowBytes', windowBytes, WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
}

/** One end of a stream. */
export class SuStream {
  /** Called once if the stream ends in another way than by both ends, or by `close`. */
  onFailure: (error: Error) => void = noop;
  /** Called when the connection has failed; the stream waits for the next one. @internal */
  onLost: (link: StreamLink, error: Error) => void = noop;
  /** Called once, when the stream no longer accepts a connection, for any reason. */
  onClosed: () => void = noop;
  /**
   * After both ends, the time that the peer has to close the connection first. Closing a TCP connection with unread
   * bytes would discard the last data sent.
   */
  lingersNs = 0;
  /** Connections so far, and bytes retransmitted. */
  readonly counters = {
    /** Number of connections. */
    connections: 0,
    /** Sent more than once. */
    resentBytes: 0,
  };
  /** From a PING to its PONG over this connection. @internal */
  readonly latency = new LatencyWindow();
  readonly #clock: Clock;
  readonly #terms: typeof DEFAULTS;
  readonly #replay = new ReplayBuffer();
  #peerWindowBytes = 0;
  #sentOff = 0;
  #highestSentOff = 0;
  #framesUnderWay = 0;
  readonly #writing = new PromiseMutex();
  #wakeWriter: () => void = noop;
  #isEnding = false;
  #isWritten = false;
  #isEndSent = false;
  #onEndConsumed: () => void = noop;
  #received = 0;
  #consumed = 0;
  #toldConsumed = 0;
  #saidAtBegin = 0;
  #hasPeerEnded = false;
  #onEnd: () => void = noop;
  #take: ((chunk: SuChunk) => void) | undefined;
  readonly #untaken: SuChunk[] = [];
  #link: StreamLink | undefined;
  #watch: ConnectionWatch | undefined;
  #pingNs: number | undefined;
  #ended: Error | undefined;
  #isOwnEndConsumed = false;

  constructor(clock: Clock, terms: StreamTerms = {}) {
    this.#clock = clock;
    this.#terms = withDefaults(DEFAULTS, terms);
  }

  /** Bytes that this side takes beyond what it has consumed. */
  get windowBytes(): number {
    return this.#terms.windowBytes;
  }

  /** What to tell the peer at the beginning of a connection. @internal */
  get progress(): { readonly offset: number; readonly consumed: number } {
    return { offset: this.#received, consumed: this.#consumed };
  }

  /** Of the connection it has; undefined between two. */
  get transport(): HostTransport | undefined {
    return this.#link?.transport;
  }

  /** It no longer accepts a connection. */
  get isEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** Called when the peer writes nothing more, all that it wrote having been handed on. */
  set onEnd(tell: () => void) {
    this.#onEnd = tell;
    if (this.#hasPeerEnded) tell();
  }

  /** Called with data, in order; data that has already arrived is delivered at once. */
  set onChunk(take: (chunk: SuChunk) => void) {
    this.#take = take;
    for (const chunk of this.#untaken.splice(0)) take(chunk);
  }

  /**
   * Sends bytes. Resolves when the stream has taken all of them, which may then change: at once while the window has
   * room, whether there is a connection or not. Rejects with ERR_ROCE_INVALID_STATE after {@link end}, and with the
   * error that ended the stream.
   */
  write(data: Uint8Array): Promise<void> {
    if (this.#isEnding) {
      return Promise.reject(
        new RoceError('ERR_ROCE_INVALID_STATE', 'the stream was ended: nothing more can be written'),
      );
    }
    return this.#writing.run(() => this.#write(data));
  }

  /** Ends the stream in this direction. Resolves when the peer's program has consumed all data. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#writing.settled;
    if (this.#ended !== undefined && !this.#isOwnEndConsumed) throw this.#ended;
    if (this.#isOwnEndConsumed) return;
    await new Promise<void>((resolve, reject) => {
      this.#onEndConsumed = () => {
        if (this.#isOwnEndConsumed) resolve();
        else reject(this.#ended);
      };
      this.#isWritten = true;
      this.#pump();
    });
  }

  /** Ends the stream at once, notifies the peer unless both directions have ended, and closes the connection. */
  async close(): Promise<void> {
    if (!this.isOver) this.#tell('ABORT', Buffer.from('the peer closed the stream'));
    this.#endWith(new RoceError('ERR_ROCE_CLOSED', 'the stream is closed'));
    const link = this.detach();
    if (link === undefined) return;
    await this.#atMost(FAREWELL_NS, link.sent);
    if (this.isOver && this.lingersNs > 0) {
      const closed = new Promise<void>((resolve) => {
        link.onFailure = () => resolve();
      });
      await this.#atMost(this.lingersNs, closed);
    }
    await link.close();
  }

  /** Why it cannot continue with such a peer, whose claims are impossible; undefined: it can. @internal */
  whyImpossible({ received, consumed }: PeerState): RoceError | undefined {
    const dataReceived = Math.min(received, this.#replay.endOff);
    const isPossible = received === dataReceived || (received === this.#replay.endOff + 1 && this.#isEndSent);
    if (
      isPossible &&
      consumed <= received &&
      dataReceived <= this.#highestSentOff &&
      this.#replay.reaches(dataReceived)
    ) {
      return undefined;
    }
    return impossible(`it has received ${received} bytes and consumed ${consumed}`);
  }

  /**
   * Continues over a connection to which the peer has agreed; `peer` is possible. `said`: the consumption of this side
   * that the peer was sent. @internal
   */
  attach(link: StreamLink, { received, consumed, windowBytes }: PeerState, said: number): void {
    const dataReceived = Math.min(received, this.#replay.endOff);
    this.#link = link;
    this.counters.connections++;
    this.#peerWindowBytes = windowBytes;
    this.counters.resentBytes += this.#highestSentOff - dataReceived;
    this.#sentOff = dataReceived;
    this.#isEndSent = received > dataReceived;
    this.#framesUnderWay = 0;
    this.#toldConsumed = said;
    this.#saidAtBegin = said;
    this.latency.clear();
    link.onFrame = (frame, body) => this.#onFrame(frame, body);
    link.onFailure = (error) => this.#lose(error);
    this.#watch = this.#watchOver(link);
    this.#onConsumed(consumed);
    this.#wakeWriter();
    this.#pump();
  }

  /**
   * Leaves the connection it has, if any; the caller closes it. Data that still arrives over it is dropped. @internal
   */
  detach(): StreamLink | undefined {
    const link = this.#link;
    this.#watch?.stop();
    this.#link = undefined;
    if (link === undefined) return undefined;
    link.onFrame = () => {};
    link.onFailure = () => {};
    return link;
  }

  /** Ends the connection as if it had failed. */
  breakConnection(why: string): void {
    this.#lose(new RoceError('ERR_ROCE_CONNECT', why));
  }

  /** The stream cannot continue. */
  fail(error: Error): void {
    if (this.#ended !== undefined) return;
    const isFailure = !this.isOver;
    this.#endWith(error);
    const link = this.detach();
    if (link !== undefined) void this.#atMost(FAREWELL_NS, link.sent).then(() => link.close().catch(noop));
    if (isFailure) this.onFailure(error);
  }

  #refuse(error: RoceError): void {
    this.#tell('ABORT', Buffer.from(error.message));
    this.fail(error);
  }

  /** Both directions have come to their end. */
  get isOver(): boolean {
    return this.#isOwnEndConsumed && this.#hasPeerEnded && this.#consumed === this.#received;
  }

  #endWith(error: Error): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    this.#wakeWriter();
    this.#onEndConsumed();
    this.onClosed();
  }

  async #atMost(ns: number, work: Promise<void>): Promise<void> {
    let cancel: () => void = noop;
    const late = new Promise<void>((resolve) => {
      cancel = this.#clock.wakeAt(this.#clock.nowNs() + ns, resolve);
    });
    await Promise.race([work, late]);
    cancel();
  }

  async #write(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length; ) {
      if (this.#ended !== undefined) throw this.#ended;
      const room = Math.min(this.#peerWindowBytes, this.windowBytes) - this.#replay.heldBytes;
      if (room <= 0) {
        await new Promise<void>((resolve) => {
          this.#wakeWriter = resolve;
        });
        continue;
      }
      const end = Math.min(data.length, at + Math.min(room, STREAM_BODY_BYTES_MAX));
      this.#replay.append(new Uint8Array(data.subarray(at, end)));
      at = end;
      this.#pump();
    }
  }

  #pump(): void {
    const link = this.#link;
    while (link !== undefined && link === this.#link && this.#framesUnderWay < FRAMES_UNDER_WAY) {
      if (this.#sentOff < this.#replay.endOff) {
        const bytes = this.#replay.at(this.#sentOff);
        this.#send(link, { type: 'DATA', offset: this.#sentOff }, bytes);
        this.#sentOff += bytes.length;
        this.#highestSentOff = Math.max(this.#highestSentOff, this.#sentOff);
      } else if (this.#isWritten && !this.#isEndSent) {
        this.#isEndSent = true;
        this.#send(link, { type: 'END', offset: this.#sentOff });
      } else return;
    }
  }

  #send(link: StreamLink, frame: Pick<StreamFrame, 'type' | 'offset'>, body?: Uint8Array): void {
    this.#toldConsumed = this.#consumed;
    this.#framesUnderWay++;
    void link.send({ ...frame, consumed: this.#consumed }, body).then(() => {
      if (link !== this.#link) return;
      this.#framesUnderWay--;
      this.#pump();
    });
  }

  #tell(type: 'ACK' | 'PING' | 'PONG' | 'ABORT', body?: Uint8Array): void {
    this.#toldConsumed = this.#consumed;
    void this.#link?.send({ type, offset: 0, consumed: this.#consumed }, body);
  }

  #onFrame({ type, offset, consumed }: StreamFrame, body: Buffer): void {
    this.#watch?.onHeard();
    if (consumed > this.#sentOff + (this.#isEndSent ? 1 : 0)) {
      this.#refuse(impossible('it consumed bytes that it never received'));
      return;
    }
    this.#onConsumed(consumed);
    switch (type) {
      case 'DATA':
        this.#onData(offset, body);
        break;
      case 'END':
        if (offset !== this.#received || this.#hasPeerEnded) {
          this.#refuse(impossible('its stream ends elsewhere'));
          return;
        }
        this.#received++;
        this.#hasPeerEnded = true;
        this.#onEnd();
        this.#release(1);
        break;
      case 'PING':
        this.#tell('PONG', body);
        break;
      case 'PONG':
        if (this.#pingNs !== undefined) this.latency.add(this.#clock.nowNs() - this.#pingNs);
        this.#pingNs = undefined;
        break;
      case 'ABORT':
        this.fail(new RoceError('ERR_ROCE_CLOSED', body.toString('utf8')));
        break;
      case 'ACK':
        break;
      default:
        this.#refuse(impossible(`it sent ${type} at the wrong time`));
    }
  }

  #onData(offset: number, bytes: Buffer): void {
    const isNext = offset === this.#received && !this.#hasPeerEnded;
    if (!isNext || bytes.length === 0) {
      this.#refuse(impossible('data from elsewhere in the stream'));
      return;
    }
    if (this.#received + bytes.length > this.#consumed + this.windowBytes) {
      this.#refuse(impossible('more than the window'));
      return;
    }
    this.#received += bytes.length;
    let isHeld = true;
    const chunk: SuChunk = {
      bytes,
      endsMessage: true,
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#release(bytes.length);
      },
    };
    if (this.#take === undefined) this.#untaken.push(chunk);
    else this.#take(chunk);
  }

  #release(bytes: number): void {
    this.#consumed += bytes;
    const isLast = this.#hasPeerEnded && this.#consumed === this.#received;
    const isMuch = this.#consumed - this.#toldConsumed >= this.windowBytes / ACKS_PER_WINDOW;
    if (isLast || isMuch) this.#tell('ACK');
  }

  #onConsumed(consumed: number): void {
    this.#replay.acknowledge(Math.min(consumed, this.#replay.endOff));
    this.#wakeWriter();
    if (!this.#isWritten || consumed <= this.#replay.endOff) return;
    this.#isOwnEndConsumed = true;
    this.#onEndConsumed();
  }

  #lose(error: Error): void {
    const link = this.detach();
    if (link === undefined) return;
    // A client whose last word may be lost reconnects once: the server waits for it.
    const isSaid = this.lingersNs === 0 || this.#saidAtBegin === this.#consumed;
    if (this.isOver && isSaid) void link.close();
    else this.onLost(link, error);
  }

  #watchOver(link: StreamLink): ConnectionWatch {
    const { idleNs, silenceNs } = this.#terms;
    return new ConnectionWatch({
      clock: this.#clock,
      idleNs,
      silenceNs,
      look: () => link !== this.#link,
      ask: () => {
        this.#pingNs = this.#clock.nowNs();
        this.#tell('PING');
      },
      onSilent: () => this.#lose(new RoceError('ERR_ROCE_CONNECT', `the peer was silent for ${silenceNs / 1e9} s`)),
    });
  }
}

function impossible(what: string): RoceError {
  return new RoceError('ERR_ROCE_MISMATCH', `the peer does not speak this version of sU streams: ${what}`);
}

function noop(): void {}
