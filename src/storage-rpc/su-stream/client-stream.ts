import type { Clock } from '../../core/clock.js';
import { RoceError } from '../../core/errors.js';
import type { RandomSource } from '../../core/random.js';
import type { KeptSession } from '../session/reconnector.js';
import type { StreamLink } from './stream-link.js';
import { type StreamTerms, SuStream } from './su-stream.js';
import { decodeWindow, encodeResume, STREAM_ID_BYTES, type StreamFrame } from './su-stream-frame.js';

const ANSWER_NS = 3e9;
/** The server closes first: the client may still query how the stream ended. */
const LINGER_NS = 1e9;

export class ClientStream implements KeptSession<StreamLink> {
  readonly stream: SuStream;
  readonly #clock: Clock;
  readonly #id: Buffer;
  #epoch = 0;
  #hasBegun = false;

  constructor(clock: Clock, random: RandomSource, terms: StreamTerms = {}) {
    this.#clock = clock;
    this.#id = Buffer.from(Array.from({ length: STREAM_ID_BYTES }, () => random.u32() & 0xff));
    this.stream = new SuStream(clock, terms);
    this.stream.lingersNs = LINGER_NS;
  }

  set onLost(tell: (link: StreamLink, error: Error) => void) {
    this.stream.onLost = tell;
  }

  get transport() {
    return this.stream.transport;
  }

  get isEnded(): boolean {
    return this.stream.isEnded;
  }

  get latency() {
    return this.stream.latency;
  }

  async resume(link: StreamLink): Promise<void> {
    await this.stream
      .detach()
      ?.close()
      .catch(() => {}); // The next connection cannot reach what is left of this one.
    this.#epoch++;
    try {
      await this.#ask(link);
    } catch (error) {
      await link.close();
      throw error;
    }
  }

  async #ask(link: StreamLink): Promise<void> {
    const { stream } = this;
    const { progress } = stream;
    let cancel: () => void = () => {};
    try {
      await new Promise<void>((resolve, reject) => {
        const late = new RoceError('ERR_ROCE_CONNECT', 'the peer does not answer');
        cancel = this.#clock.wakeAt(this.#clock.nowNs() + ANSWER_NS, () => reject(late));
        link.onFailure = reject;
        link.onFrame = (frame, body) => {
          const failure = this.#onAnswer(link, frame, body, progress.consumed);
          if (failure === undefined) resolve();
          else reject(failure);
        };
        const body = encodeResume({
          id: this.#id,
          epoch: this.#epoch,
          windowBytes: stream.windowBytes,
          mayBegin: !this.#hasBegun,
        });
        void link.send({ type: 'RESUME', ...progress }, body);
      });
    } finally {
      cancel();
    }
  }

  #onAnswer(
    link: StreamLink,
    { type, offset, consumed }: StreamFrame,
    body: Buffer,
    said: number,
  ): RoceError | undefined {
    const { stream } = this;
    if (stream.isEnded) return new RoceError('ERR_ROCE_CLOSED', 'the stream has ended');
    const windowBytes = decodeWindow(body);
    if (type === 'REFUSED')
      return this.#fail(new RoceError('ERR_ROCE_CLOSED', 'the peer has forgotten the stream', 'open a new one'));
    if (type !== 'RESUMED' || windowBytes === undefined) {
      return new RoceError('ERR_ROCE_MISMATCH', 'the peer does not speak sU streams');
    }
    const peer = { received: offset, consumed, windowBytes };
    const why = stream.whyImpossible(peer);
    if (why !== undefined) return this.#fail(why);
    this.#hasBegun = true;
    stream.attach(link, peer, said);
    return undefined;
  }

  #fail(error: RoceError): RoceError {
    this.stream.fail(error);
    return error;
  }

  async drain(): Promise<boolean> {
    return true;
  }

  /** A stream cannot continue after lost bytes: it has failed. */
  suspend(error: Error): void {
    this.stream.fail(error);
  }

  async closeGracefully(): Promise<void> {}

  end(): Promise<void> {
    return this.stream.close();
  }

  breakConnection(why: string): void {
    this.stream.breakConnection(why);
  }
}
