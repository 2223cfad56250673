/**
 * The worker engine: the NIC and its port in a separate thread, so that one-sided operations of the peer are served
 * while this thread is busy.
 */

import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { Worker, type WorkerOptions, workerData } from 'node:worker_threads';
import { RoceError } from '../../core/errors.js';
import { CODE_FILE } from '../../core/packages.js';
import { eventFdWaker } from '../../dgram-ext/readiness.js';
import { AttachedMemory } from '../../memory/ring/attached-memory.js';
import { COMMAND_DEPTH, CommandRing } from '../../memory/ring/command-ring.js';
import { COUNTER_NAMES } from '../../memory/ring/counters.js';
import { DoorbellRing } from '../../memory/ring/doorbell-ring.js';
import type { EngineLink } from '../../memory/ring/engine-link.js';
import { EVENT_DEPTH, EventRing } from '../../memory/ring/event-ring.js';
import type { Protection, ProtectionMode } from '../../memory/ring/protection.js';
import { IpAddress } from '../../packet/address.js';
import { loadedExtensions } from '../extensions.js';
import { HostNetworkInfo } from '../host-network-info.js';
import type { ProtectedPortOptions } from '../open-port.js';
import { populate } from '../populate.js';
import { SHARED_MEMORY_PORTS } from '../shm-loader.js';
import { nowNs, SYSTEM_CLOCK } from '../system-clock.js';
import type { SystemMemoryMapping } from '../system-memory-mapping.js';
import {
  ASLEEP,
  AWAKE,
  CONTROL_WORDS,
  ENGINE_THREAD,
  type FromThread,
  type ThreadData,
  type ToThread,
  WORD_INTERRUPTS,
  WORD_STATE,
} from './thread-messages.js';

const DOORBELL_DEPTH = 1024;
const SPINNER = new SharedArrayBuffer(4);

function shared(bytes: number): SharedArrayBuffer {
  return new SharedArrayBuffer(bytes);
}

/**
 * In a bundle `import.meta.url` is the bundle's, and there is none in CommonJS, where `__filename` is. Webpack
 * recognises the first form.
 */
function startThread(module: URL | undefined, workerData: ThreadData): Worker {
  const options: WorkerOptions = { workerData, ...(isFromString() && { execArgv: [] }) };
  try {
    if (module !== undefined) return new Worker(module, options);
    if (import.meta.url !== undefined) return new Worker(new URL('./engine-thread.js', import.meta.url), options);
    return new Worker(join(dirname(CODE_FILE), 'engine-thread.js'), options);
  } catch (cause) {
    throw noEngineThread(cause as Error);
  }
}

/** `node --input-type=module -e ...`: a thread inherits the option, and Node then refuses its file. */
function isFromString(): boolean {
  return process.execArgv.some((option) => option.startsWith('--input-type'));
}

async function firstMessage(worker: Worker): Promise<FromThread> {
  const exited = once(worker, 'exit').then(
    ([code]) => {
      throw new RoceError(
        'ERR_ROCE_CLOSED',
        `the NIC's thread ended with code ${code} before it was ready`,
        WORKER_HINT,
      );
    },
    () => {},
  );
  exited.catch(() => {}); // Once it is ready, its end is reported to the device.
  try {
    const [message] = (await Promise.race([once(worker, 'message'), exited])) as [FromThread];
    return typeof message?.type === 'string' ? message : ({ type: 'closed' } as const);
  } catch (error) {
    if (error instanceof RoceError) throw error;
    throw noEngineThread(error as Error);
  }
}

const WORKER_HINT =
  'bundles need rocev2/engine-thread as a separate file, next to the bundle or named by workerUrl: docs/how-to/deploy.md';

function noEngineThread(cause: Error): RoceError {
  const why = cause.message.split('\n')[0];
  return new RoceError('ERR_ROCE_NOT_FOUND', `the NIC's thread cannot be started: ${why}`, WORKER_HINT, { cause });
}

function notAnEngineThread(why: string): RoceError {
  return new RoceError(
    'ERR_ROCE_INVALID_ARGUMENT',
    `workerUrl does not name rocev2/engine-thread: ${why}`,
    WORKER_HINT,
  );
}

/** A program that is its own `workerUrl` would start itself without end. */
function refuseInsideThread(): void {
  if ((workerData as Partial<ThreadData> | null | undefined)?.role !== ENGINE_THREAD) return;
  throw notAnEngineThread('it names a program that opens devices itself');
}

type Answer = Extract<FromThread, { readonly request: number }>;

interface Request {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: RoceError) => void;
}

/** Doorbells are shared memory, control operations are messages. */
export class WorkerEngine implements EngineLink {
  readonly commands = CommandRing.create(shared, COMMAND_DEPTH);
  readonly events = EventRing.create(shared, EVENT_DEPTH);
  readonly counters = new Float64Array(shared(COUNTER_NAMES.length * 8));
  onInterrupt: () => void = () => {};
  onFailure: (cause: RoceError) => void = () => {};
  readonly #doorbells = DoorbellRing.create(shared, DOORBELL_DEPTH);
  readonly #control = new Int32Array(shared(CONTROL_WORDS * 4));
  readonly #memory = new AttachedMemory();
  readonly #worker: Worker;
  readonly #port: ProtectedPortOptions;
  readonly protection: Protection | undefined;
  #hostInfo: HostNetworkInfo | undefined;
  readonly #requests = new Map<number, Request>();
  #nextRequest = 0;
  #portDescription = '';
  #memoryDomain: string | undefined;
  #mapping: SystemMemoryMapping | undefined;
  #wakeThread = () => this.#worker.postMessage({ type: 'wake' } satisfies ToThread);
  #wakesByMessage = true;
  #closed = false;
  #isClosing = false;
  #failure: RoceError | undefined;

  static async open(port: ProtectedPortOptions, spin: boolean, module?: URL): Promise<WorkerEngine> {
    refuseInsideThread();
    const engine = new WorkerEngine(port, spin, module);
    await engine.#started();
    return engine;
  }

  private constructor(port: ProtectedPortOptions, spin: boolean, module: URL | undefined) {
    this.#port = port;
    this.protection = port.protection && this.#protectionOf(port.protection);
    const data = {
      role: ENGINE_THREAD,
      port: { ...port },
      extensions: loadedExtensions(),
      spin,
      control: this.#control.buffer as SharedArrayBuffer,
      commands: this.commands.memory as SharedArrayBuffer,
      events: this.events.memory as SharedArrayBuffer,
      doorbells: this.#doorbells.memory as SharedArrayBuffer,
      counters: this.counters.buffer as SharedArrayBuffer,
      spinner: SPINNER,
    } satisfies ThreadData;
    this.#worker = startThread(module, data);
  }

  async #started(): Promise<void> {
    const message = await firstMessage(this.#worker);
    if (message.type === 'failed') throw new RoceError(message.error.code, message.error.message);
    if (message.type !== 'ready') {
      void this.#worker.terminate();
      throw notAnEngineThread('it began with a message that is not of a NIC');
    }
    this.#portDescription = `${message.portDescription}, NIC in a worker`;
    this.#memoryDomain = message.memoryDomain;
    if (this.#port.frame === undefined) {
      this.#hostInfo = new HostNetworkInfo(IpAddress.parse(this.#port.address), message.udpPort);
    }
    if (message.wakeFd >= 0) {
      this.#wakeThread = eventFdWaker(message.wakeFd);
      this.#wakesByMessage = false;
    }
    this.#worker.on('message', (answer: FromThread) => this.#onMessage(answer));
    let cause: Error | undefined;
    this.#worker.once('error', (error) => {
      cause = error;
    });
    this.#worker.once('exit', (code) => this.#onExit(code, cause));
    this.#listen();
    if (message.mapsMemory) this.#mapping = (await SHARED_MEMORY_PORTS.loadIfPresent())?.memoryMapping(true);
  }

  /** On an unrequested exit pending requests are rejected with the reason. */
  #onExit(code: number, cause: Error | undefined): void {
    if (this.#isClosing) return;
    this.#closed = true;
    this.#wakeThread = () => {}; // Its eventfd is closed, and the number may soon be reused.
    const why = cause === undefined ? `exit code ${code}` : cause.message;
    this.#failure = new RoceError(
      'ERR_ROCE_CLOSED',
      `the NIC's thread has ended: ${why}`,
      'close the device, and open it again if work is left',
      { cause },
    );
    for (const { reject } of this.#requests.values()) reject(this.#failure);
    this.#requests.clear();
    this.onInterrupt();
    this.onFailure(this.#failure);
    Atomics.notify(this.#control, WORD_INTERRUPTS);
  }

  get memoryDomain(): string | undefined {
    return this.#memoryDomain;
  }

  get mapping(): SystemMemoryMapping | undefined {
    return this.#mapping;
  }

  get portDescription(): string {
    return this.#portDescription;
  }

  allocate(bytes: number): ArrayBufferLike {
    return shared(bytes);
  }

  populate(bytes: Uint8Array): void {
    populate(bytes);
  }

  reaches(memory: ArrayBufferLike): boolean {
    return memory instanceof SharedArrayBuffer;
  }

  attach(memory: ArrayBufferLike): number {
    if (!(memory instanceof SharedArrayBuffer)) {
      throw new RoceError(
        'ERR_ROCE_UNSUPPORTED',
        'the NIC runs in a worker and cannot reach memory of this thread alone',
        'take memory from device.allocate(), give regMr a length, or use a SharedArrayBuffer',
      );
    }
    const { id, isNew } = this.#memory.attach(memory);
    if (isNew) this.#post({ type: 'attach', id, memory });
    return id;
  }

  detach(memoryId: number): void {
    if (this.#memory.detach(memoryId)) this.#post({ type: 'detach', id: memoryId });
  }

  nowNs(): number {
    return nowNs();
  }

  wakeAt(timeNs: number, wake: () => void): () => void {
    return SYSTEM_CLOCK.wakeAt(timeNs, wake);
  }

  pathMtuTowards(address: IpAddress): number | undefined {
    return this.#hostInfo?.pathMtuTowards(address);
  }

  refreshCounters(): void {
    this.#hostInfo?.refreshCounters(this.counters);
  }

  ringCommands(): void {
    // A message, although the ring is shared: what was attached before must have arrived.
    this.#post({ type: 'commands', end: this.commands.producer });
  }

  ringDoorbell(qpn: number): void {
    this.#doorbells.ring(qpn);
    if (Atomics.load(this.#control, WORD_STATE) !== ASLEEP) return;
    // The first that finds it asleep wakes it.
    if (Atomics.compareExchange(this.#control, WORD_STATE, ASLEEP, AWAKE) === ASLEEP) this.#wakeThread();
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
    if (!this.#wakesByMessage) this.#wakeThread();
  }

  async resolve(address: IpAddress, sharingPort?: number): Promise<boolean> {
    const peer = { address: address.text, ...(sharingPort !== undefined && { sharingPort }) };
    const answer = await this.#ask((request) => ({ type: 'resolve', request, ...peer }));
    return answer.type === 'resolved' && answer.shares;
  }

  unshare(address: IpAddress, udpPort: number): void {
    this.#post({ type: 'unshare', address: address.text, udpPort });
  }

  async #ask(messageOf: (request: number) => ToThread): Promise<Answer> {
    if (this.#failure !== undefined) throw this.#failure;
    const request = this.#nextRequest++;
    return new Promise((resolve, reject) => {
      this.#requests.set(request, { resolve, reject });
      this.#post(messageOf(request));
    });
  }

  #protectionOf(mode: ProtectionMode): Protection {
    return {
      mode,
      associate: async (terms) => {
        await this.#ask((request) => ({ type: 'associate', request, terms }));
      },
      begin: (spi) => this.#post({ type: 'begin', spi }),
      retire: (spi) => this.#post({ type: 'retire', spi }),
      counts: async (spi) => {
        const answer = await this.#ask((request) => ({ type: 'counts', request, spi }));
        return answer.type === 'counted' ? answer.counts : undefined;
      },
      dissolve: (spi) => this.#post({ type: 'dissolve', spi }),
    };
  }

  #onMessage(message: FromThread): void {
    if (!('request' in message)) return;
    const request = this.#requests.get(message.request);
    this.#requests.delete(message.request);
    if (message.type === 'refused') request?.reject(new RoceError(message.error.code, message.error.message));
    else request?.resolve(message);
  }

  /**
   * Interrupts: a wait on the counter, renewed each time. The counter is read before the events, so a later event ends
   * the wait at once.
   */
  #listen(): void {
    while (!this.#closed) {
      const seen = Atomics.load(this.#control, WORD_INTERRUPTS);
      this.onInterrupt();
      const wait = Atomics.waitAsync(this.#control, WORD_INTERRUPTS, seen);
      if (!wait.async) continue;
      void wait.value.then(() => this.#listen());
      return;
    }
  }

  async close(): Promise<void> {
    if (this.#failure !== undefined) return;
    this.#isClosing = true;
    const exited = once(this.#worker, 'exit');
    this.#post({ type: 'close' });
    this.#wakeThread = () => {}; // The thread closes its eventfd, whose number may soon be reused.
    await exited;
    this.onInterrupt();
    this.#closed = true;
    Atomics.notify(this.#control, WORD_INTERRUPTS);
  }
}
