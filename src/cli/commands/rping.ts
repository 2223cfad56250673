/**
 * `rocev2 rping`: a peer of rping (rdma-core, librdmacm/examples/rping.c). The client tells where its text lies, the server reads it with
 * RDMA READ, the client tells where it wants it back, the server writes it there with RDMA WRITE; each step is answered by a SEND.
 */

import { type Command, Option } from 'commander';
import type { CmConnection } from '../../cm/cm-connection.js';
import { ConnectionManager } from '../../cm/connection-manager.js';
import { initializeQp } from '../../cm/qp-parameters.js';
import { RoceError } from '../../core/errors.js';
import type { IpAddress } from '../../packet/address.js';
import { Access } from '../../verbs/access.js';
import { type CompletionQueue, checkCompletion } from '../../verbs/completion-queue.js';
import type { RdmaDevice } from '../../verbs/device.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import { openDevice } from '../../verbs/open-device.js';
import type { ProtectionDomain } from '../../verbs/protection-domain.js';
import type { QueuePair } from '../../verbs/queue-pair.js';
import { CommandFailure, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_VERIFICATION_FAILED } from '../exit.js';
import { type FrameFlags, type FrameWire, frameDeviceOptions, frameOption } from '../frame-wire.js';
import { localAddressTowards } from '../local-address.js';
import { addressOption, countOption, portOption, sizeOption } from '../options.js';
import { type CliIo, Output } from '../output.js';
import { linger, watched } from '../peer-watch.js';

const DEFAULT_PORT = 7174;
const DEFAULT_SIZE_BYTES = 64;
/** As rping: room for the longest beginning of a text, and its buffer. */
const SIZE_MIN_BYTES = 26;
const SIZE_MAX_BYTES = 64 * 1024 - 1;
/** Address (8), rkey (4) and length (4) of a buffer, big-endian. */
const ADVERTISEMENT_BYTES = 16;
/** The letters of the text. */
const FIRST_LETTER = 65;
const LETTERS = 122 - FIRST_LETTER + 1;
/** A client that is gone is not waited for as long as Linux would. */
const TIMING = { maxRetries: 4 };

interface RpingOptions {
  readonly server?: boolean;
  readonly client?: boolean;
  readonly address?: IpAddress;
  readonly port: number;
  readonly count?: number;
  readonly size: number;
  readonly verbose?: boolean;
  readonly validate?: boolean;
  readonly bind?: IpAddress;
  readonly frame?: FrameWire;
  readonly framePort?: number;
  readonly linkMtu?: number;
  readonly json?: boolean;
}

export function register(program: Command, io: CliIo): void {
  program
    .enablePositionalOptions() // -V behind the command is rping's, not the version
    .command('rping')
    .description('Ping over rdma_cm with rping, or with another rocev2 rping: SEND, RDMA READ and RDMA WRITE.')
    .addOption(new Option('-s, --server', 'wait for a client, and answer it').conflicts('client'))
    .addOption(new Option('-c, --client', 'ping a server'))
    .requiredOption('-a, --address <address>', 'the server (with -s: the address to listen on)', addressOption)
    .option('-p, --port <port>', 'port of rdma_cm', portOption, DEFAULT_PORT)
    .option('-C, --count <n>', 'pings (default: until Ctrl-C); a server fails when there were fewer', countOption)
    .option('-S, --size <size>', 'size of a ping, 26 bytes to 64 KiB - 1', sizeOption, DEFAULT_SIZE_BYTES)
    .option('-v, --verbose', 'print the text of every ping')
    .option('-V, --validate', 'check the contents of every ping')
    .option('--bind <address>', 'client: RoCE address of this side (default: what the route says)', addressOption)
    .option('--frame <host:port[,rate]>', 'plug into this port of a rocev2 switch, or into a QEMU guest', frameOption)
    .option('--frame-port <port>', 'with --frame: UDP port of this end (default: any)', portOption)
    .option('--link-mtu <bytes>', 'with --frame: largest IP packet of the link (default: 9000)', countOption)
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 rping -s -a 127.0.0.2 -V
  rocev2 rping -c -a 127.0.0.2 --bind 127.0.0.1 -C 1000 -V
  rocev2 rping -c -a 10.77.0.2 --bind 10.77.0.1 --frame 127.0.0.1:6002 -C 10     # a port of rocev2 switch`,
    )
    .action((options: RpingOptions) => rping(options, new Output(io, options.json === true)));
}

async function rping(options: RpingOptions, output: Output): Promise<void> {
  const { size, server, client } = options;
  if (size < SIZE_MIN_BYTES || size > SIZE_MAX_BYTES) {
    throw new RoceError(
      'ERR_ROCE_INVALID_ARGUMENT',
      `a ping of ${size} bytes`,
      `it may have ${SIZE_MIN_BYTES} to ${SIZE_MAX_BYTES}`,
    );
  }
  if (server !== true && client !== true) throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'give -s or -c');
  const wire = await frameDeviceOptions(wireOf(options));
  const local = server === true ? options.address! : (options.bind ?? (await localAddressTowards(options.address!)));
  await using device = await openDevice({ address: local.text, ...wire });
  await using cm = await ConnectionManager.open(device, { timing: TIMING });
  const end = await RpingEnd.create(device, options);
  const { interrupted } = output.io;
  const tally = await (server === true ? serve(cm, end, interrupted, output) : ping(cm, end, interrupted, output));
  output.line(`${tally.pings} pings of ${size} bytes in ${tally.seconds.toFixed(2)} seconds`);
  output.document({
    role: server === true ? 'server' : 'client',
    peer: tally.peer.text,
    iterations: tally.pings,
    sizeBytes: size,
    seconds: tally.seconds,
    verified: options.validate === true && tally.faults === 0,
  });
  if (tally.faults > 0) throw new CommandFailure(EXIT_VERIFICATION_FAILED, `${tally.faults} pings had wrong contents`);
  if (interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED);
  if (tally.pings < (options.count ?? 0)) {
    throw new CommandFailure(EXIT_FAILED, `the client ended after ${tally.pings} of ${options.count} pings`);
  }
}

/** A server has its address from -a, a client on a wire must be told. */
function wireOf({ server, address, bind, frame, framePort, linkMtu }: RpingOptions): FrameFlags {
  const own = server === true ? address : bind;
  return {
    ...(own !== undefined && { bind: own }),
    ...(frame !== undefined && { frame }),
    ...(framePort !== undefined && { framePort }),
    ...(linkMtu !== undefined && { linkMtu }),
  };
}

/** How a run went. */
interface Tally {
  readonly peer: IpAddress;
  pings: number;
  faults: number;
  seconds: number;
}

async function serve(cm: ConnectionManager, end: RpingEnd, interrupted: AbortSignal, output: Output): Promise<Tally> {
  const { options } = end;
  const listener = cm.listen(options.port);
  const stop = () => listener.close();
  interrupted.addEventListener('abort', stop, { once: true });
  output.note(`listening on ${cm.device.address} port ${options.port}`);
  let connection: CmConnection;
  try {
    connection = await (await listener.next()).accept(end.qp, { responderResources: 1, initiatorDepth: 1 });
  } catch (error) {
    throw interrupted.aborted ? new CommandFailure(EXIT_INTERRUPTED) : error;
  } finally {
    interrupted.removeEventListener('abort', stop);
    listener.close();
  }
  const tally: Tally = { peer: connection.remote, pings: 0, faults: 0, seconds: 0 };
  const started = performance.now();
  const hangUp = () => void connection.disconnect();
  interrupted.addEventListener('abort', hangUp, { once: true });
  while (await end.answer(tally, output)) tally.pings++;
  tally.seconds = (performance.now() - started) / 1000;
  await connection.disconnect();
  await linger();
  return tally;
}

async function ping(cm: ConnectionManager, end: RpingEnd, interrupted: AbortSignal, output: Output): Promise<Tally> {
  const { options } = end;
  const connection = await cm.connect(options.address!, options.port, end.qp, {
    responderResources: 1,
    initiatorDepth: 1,
    signal: interrupted,
  });
  const tally: Tally = { peer: connection.remote, pings: 0, faults: 0, seconds: 0 };
  const started = performance.now();
  await watched(cm.device, new AbortController().signal, async (alive) => {
    while (tally.pings < (options.count ?? Number.POSITIVE_INFINITY) && !interrupted.aborted) {
      await end.ask(tally, output);
      tally.pings++;
      alive();
    }
  });
  tally.seconds = (performance.now() - started) / 1000;
  await connection.disconnect();
  return tally;
}

/** The text of ping number `n`, as rping makes it: a heading, letters that begin one further every time, a zero byte. */
export function pingText(n: number, sizeBytes: number): Buffer {
  const text = Buffer.alloc(sizeBytes);
  const heading = text.write(`rdma-ping-${n}: `, 'latin1');
  for (let i = heading; i < sizeBytes - 1; i++) text[i] = FIRST_LETTER + ((n + i - heading) % LETTERS);
  return text;
}

/** A QP with its four buffers: the text, where it comes back to, and one message each way. */
class RpingEnd {
  readonly qp: QueuePair;
  readonly options: RpingOptions;
  readonly #cq: CompletionQueue;
  readonly #text: MemoryRegion;
  readonly #sink: MemoryRegion;
  readonly #outgoing: MemoryRegion;
  readonly #incoming: MemoryRegion;
  #hasMessage = false;

  private constructor(qp: QueuePair, cq: CompletionQueue, regions: readonly MemoryRegion[], options: RpingOptions) {
    this.qp = qp;
    this.options = options;
    this.#cq = cq;
    [this.#text, this.#sink, this.#outgoing, this.#incoming] = regions;
  }

  static async create(device: RdmaDevice, options: RpingOptions): Promise<RpingEnd> {
    const cq = await device.createCq(16);
    const pd: ProtectionDomain = await device.createPd();
    const qp = await pd.createQp({ sendCq: cq, maxSendWr: 8, maxRecvWr: 2 });
    const bufferBytes = options.server === true ? SIZE_MAX_BYTES : options.size;
    const regions = [
      await pd.regMr(bufferBytes, Access.LOCAL_WRITE | Access.REMOTE_READ),
      await pd.regMr(bufferBytes, Access.LOCAL_WRITE | Access.REMOTE_WRITE),
      await pd.regMr(ADVERTISEMENT_BYTES, Access.LOCAL_WRITE),
      await pd.regMr(ADVERTISEMENT_BYTES, Access.LOCAL_WRITE),
    ];
    await initializeQp(qp);
    const end = new RpingEnd(qp, cq, regions, options);
    end.#postReceive();
    return end;
  }

  /** The client's part of one ping. */
  async ask(tally: Tally, output: Output): Promise<void> {
    const text = pingText(tally.pings, this.options.size);
    this.#text.bytes.set(text);
    this.#sink.bytes.fill(0);
    await this.#advertise(this.#text);
    await this.#message();
    await this.#advertise(this.#sink);
    await this.#message();
    if (this.options.verbose === true) output.line(`ping data: ${printable(this.#sink.bytes)}`);
    if (this.options.validate === true && !this.#sink.bytes.equals(text)) tally.faults++;
  }

  /** The server's part of one ping; false when the client has gone instead. */
  async answer(tally: Tally, output: Output): Promise<boolean> {
    if (!(await this.#messageOrEnd())) return false;
    const source = this.#advertised();
    const sge = this.#text.sge(0, source.length);
    this.qp.postSend({ opcode: 'RDMA_READ', sges: [sge], remoteAddr: source.address, rkey: source.rkey });
    await this.#completionOf('RDMA_READ');
    const text = this.#text.bytes.subarray(0, source.length);
    if (this.options.verbose === true) output.line(`server ping data: ${printable(text)}`);
    if (this.options.validate === true && !text.equals(pingText(tally.pings, source.length))) tally.faults++;
    await this.#advertise(this.#text);
    await this.#message();
    const sink = this.#advertised();
    const back = this.#text.sge(0, Math.min(printable(text).length + 1, sink.length));
    this.qp.postSend({ opcode: 'RDMA_WRITE', sges: [back], remoteAddr: sink.address, rkey: sink.rkey });
    await this.#completionOf('RDMA_WRITE');
    await this.#advertise(this.#text);
    return true;
  }

  #postReceive(): void {
    this.qp.postRecv({ sges: [this.#incoming.sge()] });
  }

  /** Tells the peer of a buffer. In the server's messages nobody looks at the contents. */
  async #advertise(region: MemoryRegion): Promise<void> {
    while (this.qp.sendRoom === 0) await this.#nextCompletion(); // ACKs were lost: the peer answers ahead of them.
    const message = this.#outgoing.bytes;
    message.writeBigUInt64BE(region.addr, 0);
    message.writeUInt32BE(region.rkey, 8);
    message.writeUInt32BE(this.options.size, 12);
    this.qp.postSend({ opcode: 'SEND', sges: [this.#outgoing.sge()] });
  }

  #advertised(): { address: bigint; rkey: number; length: number } {
    const message = this.#incoming.bytes;
    const length = message.readUInt32BE(12);
    if (length > this.#text.length) {
      throw new RoceError(
        'ERR_ROCE_MISMATCH',
        `the client pings with ${length} bytes; ${this.#text.length} is the most`,
      );
    }
    return { address: message.readBigUInt64BE(0), rkey: message.readUInt32BE(8), length };
  }

  async #message(): Promise<void> {
    if (!(await this.#messageOrEnd())) throw disconnected();
  }

  /** Waits for a message of the peer's; false when the connection has ended. */
  async #messageOrEnd(): Promise<boolean> {
    while (!this.#hasMessage) if ((await this.#nextCompletion()) === undefined) return false;
    this.#hasMessage = false;
    return true;
  }

  /** Waits until the request is done. */
  async #completionOf(request: 'RDMA_READ' | 'RDMA_WRITE'): Promise<void> {
    for (let opcode: string | undefined = ''; opcode !== request; opcode = await this.#nextCompletion()) {
      if (opcode === undefined) throw disconnected();
    }
  }

  /** What has completed; undefined when the connection has ended. */
  async #nextCompletion(): Promise<string | undefined> {
    const wc = await this.#cq.next();
    if (wc.statusName === 'WR_FLUSH_ERR') return undefined;
    const { opcode, byteLen } = checkCompletion(wc);
    if (opcode === 'RECV') {
      if (byteLen !== ADVERTISEMENT_BYTES) {
        throw new RoceError('ERR_ROCE_MISMATCH', `a message of ${byteLen} bytes`, 'is the peer rping?');
      }
      this.#hasMessage = true;
      this.#postReceive(); // The buffer is not written again before the peer has our answer.
    }
    return opcode;
  }
}

function disconnected(): RoceError {
  return new RoceError('ERR_ROCE_CONNECT', 'the peer has disconnected');
}

/** Up to the zero byte. */
function printable(text: Buffer): string {
  const end = text.indexOf(0);
  return text.toString('latin1', 0, end < 0 ? text.length : end);
}
