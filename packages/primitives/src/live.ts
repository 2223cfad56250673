import { type ConnectOptions, connect, type Listener, type ListenOptions, listen, serveEach } from 'rocev2/internal/cm';
import { checkKind, checkOptions, checkWhole, type OptionNames, RefusedPeers } from 'rocev2/internal/core';
import { wallMs } from 'rocev2/internal/driver';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import type { CellsInit } from './cells.js';
import { Primitives } from './client.js';
import { PrimitivesOwner } from './owner.js';
import { WORD_BYTES } from './words.js';

const CONNECTION = { messageBytesMax: 4096, receiveDepth: 8 } as const;
const WORDS = 65_536;
const WORDS_MAX = 1 << 24;
const CLIENTS = 1024;
/** Half of the numbers of producers: one that was used lately is not used again. */
const CLIENTS_MAX = 8192;
const FIRST_NUMBER_MAX = 2 ** 52;

/** Options of {@link servePrimitives}. */
export interface ServePrimitivesOptions {
  /**
   * Use an engine in a worker (`openDevice({engine: 'worker'})`): then the primitives work while this thread is busy.
   */
  readonly device: RdmaDevice;
  /** TCP port; 0 lets the system choose. */
  readonly port: number;
  /** TCP address, default the device's. */
  readonly host?: string | undefined;
  /**
   * Words of 64 bits, 1 to 2^24: one for each name, of a semaphore one for each permit, of a ring its messages. Default
   * 65,536.
   */
  readonly words?: number | undefined;
  /** Clients at a time, 1 to 8192. Default 1024. */
  readonly clientsMax?: number | undefined;
  /**
   * An owner may have died here, and holders of its locks may not have noticed. A lock or semaphore is then given out
   * one lease after the first client has waited for it. Default false: at once.
   */
  readonly isRestart?: boolean | undefined;
  /**
   * Tokens and sequences begin above those of any owner with a smaller one, 0 to 2^52. Default: microseconds since
   * 1970, by the time of day, so that a new owner begins above the old one. Set it where the time of day may have been
   * put back.
   */
  readonly firstNumber?: number | undefined;
  /** Takes the first refused connection, as one line. */
  readonly onNotice?: ((notice: string) => void) | undefined;
}

/** Options of {@link openPrimitives}. */
export interface OpenPrimitivesOptions extends Pick<ConnectOptions, 'host' | 'port' | 'signal' | 'timeoutMs'> {
  /** Device of the client. */
  readonly device: RdmaDevice;
}

const SERVE_OPTIONS: OptionNames<ServePrimitivesOptions> = {
  device: true,
  port: true,
  host: true,
  words: true,
  clientsMax: true,
  isRestart: true,
  firstNumber: true,
  onNotice: true,
};
const OPEN_OPTIONS: OptionNames<OpenPrimitivesOptions> = {
  device: true,
  host: true,
  port: true,
  signal: true,
  timeoutMs: true,
};

/** An owner of primitives on sockets; made by {@link servePrimitives}. */
export class PrimitivesServer extends PrimitivesOwner {
  readonly #listener: Listener;

  /** @internal */
  constructor(listener: Listener, device: RdmaDevice, init: CellsInit) {
    super(init, device.clock);
    this.#listener = listener;
    void serveEach(listener, (connection) => this.add(connection));
  }

  /** TCP port that clients connect to. */
  get port(): number {
    return this.#listener.port;
  }

  /** Ends the listener, the connections of all clients, and with them all leases. */
  override async close(): Promise<void> {
    await this.#listener.close();
    await super.close();
  }
}

/**
 * Opens memory of the device to clients, who keep counters, sequencers, locks, semaphores and barriers in it. Rejects
 * with ERR_ROCE_OUT_OF_RANGE, ERR_ROCE_UNKNOWN_NAME, ERR_ROCE_INVALID_ARGUMENT, and as `listen` does.
 */
export async function servePrimitives(options: ServePrimitivesOptions): Promise<PrimitivesServer> {
  checkOptions('servePrimitives', options, SERVE_OPTIONS);
  const { device, port, host, words = WORDS, clientsMax = CLIENTS, isRestart = false, onNotice } = options;
  checkKind('device', device, typeof device?.createPd === 'function', 'a device of openDevice()');
  checkWhole('words', words, 1, WORDS_MAX);
  checkWhole('clientsMax', clientsMax, 1, CLIENTS_MAX);
  checkKind('isRestart', isRestart, typeof isRestart === 'boolean', 'true or false');
  checkKind('onNotice', onNotice, onNotice === undefined || typeof onNotice === 'function', 'a function');
  const firstNumber = checkWhole('firstNumber', options.firstNumber ?? wallMs() * 1000, 0, FIRST_NUMBER_MAX);
  const listenOptions: ListenOptions = {
    ...CONNECTION,
    port,
    ...(host !== undefined && { host }),
    maxConnections: clientsMax,
    maxConnectionsPerAddress: clientsMax,
  };
  const region = device.allocate(words * WORD_BYTES);
  const init = { region, firstNumber: BigInt(firstNumber), areLocksHeld: isRestart };
  const listener = await listen(device, listenOptions);
  new RefusedPeers('a client', onNotice).hear(listener);
  return new PrimitivesServer(listener, device, init);
}

/** Opens the primitives of an owner. Rejects as `connect` does, and with ERR_ROCE_MISMATCH if the peer has none. */
export async function openPrimitives(options: OpenPrimitivesOptions): Promise<Primitives> {
  checkOptions('openPrimitives', options, OPEN_OPTIONS);
  const { device, ...target } = options;
  checkKind('device', device, typeof device?.createPd === 'function', 'a device of openDevice()');
  return Primitives.over(await connect(device, { ...CONNECTION, ...target }));
}
