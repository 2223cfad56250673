/**
 * The promise API: `listen` and `connect` over the TCP exchange.
 *
 *     // server                                              // client
 *     const device = await openDevice({address: '127.0.0.1'});   const device = await openDevice({address: '127.0.0.2'});
 *     const listener = await listen(device, {port: 18515});      const peer = await connect(device, {host: '127.0.0.1', port: 18515});
 *     const peer = await listener.accept();                      await peer.send(Buffer.from('hello'));
 *     (await peer.receive()).data.toString();   // 'hello'
 */

import { checkBoolean, checkKind, checkOptions, checkWhole, ifGiven, type OptionNames } from '../core/arguments.js';
import type { Clock } from '../core/clock.js';
import { RoceError } from '../core/errors.js';
import { formatHostPort } from '../core/host-port.js';
import { NS_PER_MS } from '../core/units.js';
import { type CancellationState, WAIT_OPTIONS, WaitDeadline, type WaitOptions, waitFor } from '../core/wait.js';
import { rateControlSettings } from '../dcqcn/rate-controls.js';
import { IpAddress } from '../packet/address.js';
import { recoverySettings, STANDARD_RECOVERY } from '../retransmit/recovery-schemes.js';
import type { RdmaDevice } from '../verbs/device.js';
import { AttemptLimiter } from './attempt-limiter.js';
import type { Connection } from './connection.js';
import { checkConnectionOptions } from './connection-option-checks.js';
import {
  CONNECTION_OPTIONS,
  type ConnectionOptions,
  MESSAGE_BYTES_DEFAULT,
  makeParts,
  RECEIVE_DEPTH_DEFAULT,
} from './connection-parts.js';
import { dial } from './control-channel.js';
import { exchangeAsClient, PeerBusyError } from './exchange.js';
import { Listener, type ListenOptions } from './listener.js';
import { channelSecurity } from './secure-channel.js';
import { setUpOverChannel, setUpThroughManager } from './set-up.js';

/** Options of {@link connect}. */
export interface ConnectOptions extends ConnectionOptions, WaitOptions {
  /** TCP address of the listener; with `manager`, its IP address. */
  readonly host: string;
  /** TCP port of the listener; with `manager`, its RDMA CM port. */
  readonly port: number;
  /**
   * How long to retry while the listener refuses because it is full, in milliseconds. Pauses are random, 25 ms to 1.5
   * s, so that refused clients do not all return at once. 0: one attempt. Default 5000. Over RDMA CM the manager's
   * timers apply instead.
   */
  readonly busyTimeoutMs?: number | undefined;
}

const LISTEN_OPTIONS: OptionNames<ListenOptions> = {
  ...CONNECTION_OPTIONS,
  port: true,
  host: true,
  maxConnections: true,
  maxConnectionsPerAddress: true,
  closesConnections: true,
};
const CONNECT_OPTIONS: OptionNames<ConnectOptions> = {
  ...CONNECTION_OPTIONS,
  ...WAIT_OPTIONS,
  host: true,
  port: true,
  busyTimeoutMs: true,
};
const BUSY_TIMEOUT_MS = 5_000;
const BUSY_TIMEOUT_MS_MAX = 0x7fffffff;
/** The mean of the first pause between two attempts, which doubles up to the last. */
const FIRST_PAUSE_MS = 50;
const LAST_PAUSE_MS = 1_000;

const DEFAULTS = { messageBytesMax: MESSAGE_BYTES_DEFAULT, receiveDepth: RECEIVE_DEPTH_DEFAULT };
const PORT_MAX = 65_535;
const CONNECTIONS_MAX = 2 ** 24;

interface Call {
  readonly name: 'connect' | 'listen';
  readonly host: unknown;
  readonly portMin: number;
}

function checkValues<O extends ConnectionOptions & { readonly port: number }>(
  { name: call, host, portMin }: Call,
  device: RdmaDevice,
  options: O,
  known: OptionNames<O>,
): void {
  checkKind(`the device of ${call}`, device, typeof device?.createPd === 'function', 'what openDevice() gave');
  const { port, recovery, rateControl, manager, secure, allow } = options ?? {};
  if (port === undefined || typeof host !== 'string') {
    throw new RoceError(
      'ERR_ROCE_INVALID_ARGUMENT',
      `${call} needs a host and a port`,
      `${call}(device, { host, port })`,
    );
  }
  checkOptions(call, options, known);
  checkWhole('port', port, manager === undefined ? portMin : 1, PORT_MAX);
  checkConnectionOptions(device, options, DEFAULTS);
  const { name } = recoverySettings(recovery ?? STANDARD_RECOVERY);
  if (manager !== undefined && name !== STANDARD_RECOVERY) {
    throw new RoceError('ERR_ROCE_UNSUPPORTED', `RDMA CM does not support ${name}`, 'connect over TCP instead');
  }
  if (manager !== undefined && (allow !== undefined || (secure ?? 'off') !== 'off')) {
    throw new RoceError('ERR_ROCE_UNSUPPORTED', 'RDMA CM has no secure mode', 'connect over TCP instead');
  }
  if (rateControl !== undefined) rateControlSettings(rateControl);
}

/**
 * Connects to a listener. Rejects with ERR_ROCE_CONNECT if there is no answer, ERR_ROCE_MISMATCH if the two sides do
 * not match, ERR_ROCE_ABORTED or ERR_ROCE_TIMEOUT as `signal` and `timeoutMs` say. After a rejection, neither side has
 * a connection.
 */
export async function connect(device: RdmaDevice, options: ConnectOptions): Promise<Connection> {
  checkValues({ name: 'connect', host: options?.host, portMin: 1 }, device, options, CONNECT_OPTIONS);
  const deadline = WaitDeadline.of('connect', options, device.clock, CONNECT_OPTIONS);
  const { signal: _, timeoutMs: __, busyTimeoutMs = BUSY_TIMEOUT_MS, ...rest } = options;
  checkWhole('busyTimeoutMs', busyTimeoutMs, 0, BUSY_TIMEOUT_MS_MAX);
  const attempt = options.manager === undefined ? retryWhileBusy(connectOverTcp, busyTimeoutMs) : connectThroughManager;
  return waitFor(
    deadline,
    (cancellation) => attempt(device, rest, cancellation),
    (connection) => connection.close(),
  );
}

type Attempt = (device: RdmaDevice, options: ConnectOptions, cancellation: CancellationState) => Promise<Connection>;

const LIMITERS = new WeakMap<RdmaDevice, AttemptLimiter>();

function limiterOf(device: RdmaDevice): AttemptLimiter {
  const limiter = LIMITERS.get(device) ?? new AttemptLimiter();
  LIMITERS.set(device, limiter);
  return limiter;
}

function retryWhileBusy(attempt: Attempt, timeoutMs: number): Attempt {
  return async (device, options, cancellation) => {
    const { clock } = device;
    const limiter = limiterOf(device);
    const target = formatHostPort(options.host, options.port);
    let endNs = Number.POSITIVE_INFINITY;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)) {
      try {
        return await limiter.run(target, cancellation, () => attempt(device, options, cancellation));
      } catch (error) {
        if (!(error instanceof PeerBusyError)) throw error;
        endNs = Math.min(endNs, clock.nowNs() + timeoutMs * NS_PER_MS); // From the first refusal on.
        const pauseNs = pauseMs * (0.5 + Math.random()) * NS_PER_MS;
        if (clock.nowNs() + pauseNs > endNs) throw stillBusy(error, timeoutMs);
        await pauseUnlessEnded(clock, pauseNs, cancellation);
      }
    }
  };
}

function stillBusy({ message }: PeerBusyError, timeoutMs: number): RoceError {
  const hint =
    timeoutMs === 0
      ? 'try again later, or pass busyTimeoutMs'
      : `it had no room for ${timeoutMs} ms: try again later, or pass a longer busyTimeoutMs`;
  return new PeerBusyError(message, hint);
}

async function pauseUnlessEnded(clock: Clock, ns: number, cancellation: CancellationState): Promise<void> {
  await new Promise<void>((resolve) => {
    const cancel = clock.wakeAt(clock.nowNs() + ns, resolve);
    cancellation.onEnd = () => {
      cancel();
      resolve();
    };
    if (cancellation.error !== undefined) cancellation.onEnd(cancellation.error);
  });
  if (cancellation.error !== undefined) throw cancellation.error;
}

async function connectThroughManager(
  device: RdmaDevice,
  options: ConnectOptions,
  cancellation: CancellationState,
): Promise<Connection> {
  const { manager, host, port, mtu, retryCnt } = options;
  const parts = await makeParts(device, options);
  const abort = new AbortController();
  cancellation.onEnd = (error) => abort.abort(error);
  if (cancellation.error !== undefined) abort.abort(cancellation.error);
  return setUpThroughManager(parts, (qp, privateData) =>
    manager!.connect(IpAddress.parse(host), port, qp, {
      privateData,
      signal: abort.signal,
      ...(mtu !== undefined && { pathMtu: mtu }),
      ...(retryCnt !== undefined && { retryCount: retryCnt }),
    }),
  );
}

async function connectOverTcp(
  device: RdmaDevice,
  options: ConnectOptions,
  cancellation: CancellationState,
): Promise<Connection> {
  const { host, port, allowForeignGid } = options;
  const security = channelSecurity(device, options);
  const abort = new AbortController();
  cancellation.onEnd = (error) => abort.abort(error);
  // From the device's own address, which is the GID: a listener compares them.
  const local = allowForeignGid === true ? undefined : device.address;
  const channel = await dial(host, port, local, abort.signal, security);
  cancellation.onEnd = () => channel.abort();
  if (cancellation.error !== undefined) channel.abort();
  try {
    return await setUpOverChannel(await makeParts(device, options), channel, exchangeAsClient);
  } catch (error) {
    channel.close();
    throw error;
  }
}

/** Listens for connections. Rejects with ERR_ROCE_IO if the TCP port is in use. */
export async function listen(device: RdmaDevice, options: ListenOptions): Promise<Listener> {
  checkValues({ name: 'listen', host: options?.host ?? '', portMin: 0 }, device, options, LISTEN_OPTIONS);
  const { maxConnections, maxConnectionsPerAddress, closesConnections } = options;
  ifGiven(maxConnections, (value) => checkWhole('maxConnections', value, 1, CONNECTIONS_MAX));
  ifGiven(maxConnectionsPerAddress, (value) => checkWhole('maxConnectionsPerAddress', value, 1, CONNECTIONS_MAX));
  ifGiven(closesConnections, (value) => checkBoolean('closesConnections', value));
  return Listener.open(device, options);
}
