import {
  checkBoolean,
  checkKind,
  checkObject,
  checkOptions,
  checkText,
  checkWhole,
  ifGiven,
  type OptionNames,
  shown,
} from '../core/arguments.js';
import { namesHint } from '../core/did-you-mean.js';
import { RoceError } from '../core/errors.js';
import { loadExtensions, moduleHref } from '../driver/extensions.js';
import { InlineEngine } from '../driver/inline-engine.js';
import { openPort, type PortOptions } from '../driver/open-port.js';
import { PORT_IOS } from '../driver/port-io.js';
import { SECURE_PORTS } from '../driver/secure-loader.js';
import { systemRandom } from '../driver/system-random.js';
import { WorkerEngine } from '../driver/worker/worker-engine.js';
import type { EngineLink } from '../memory/ring/engine-link.js';
import { RdmaDevice } from './device.js';
import type { EstatsOptions } from './device-telemetry.js';
import { DeviceSecurity, type SecureOptions } from './security.js';
import { TELEMETRY } from './telemetry-loader.js';

/** Names of all engines. */
export const ENGINES = ['inline', 'worker'] as const;
/** Where the NIC runs: on the caller's event loop, or in its own thread. */
export type EngineName = (typeof ENGINES)[number];

/** Options of {@link openDevice}. Only `address` is required. */
export interface DeviceOptions extends PortOptions {
  /**
   * Where the NIC runs. `inline` (default): on the caller's event loop; while that is blocked, peers wait. `worker`: in
   * its own thread, which serves the peer's one-sided operations independently of this one; regions have to be shared
   * memory (`device.allocate`), and `io` is `auto` unless said otherwise.
   */
  readonly engine?: EngineName | undefined;
  /**
   * Worker engine: the NIC polls for up to 50 us before it sleeps, if that has paid lately and the system has a core to
   * spare. This makes round trips several times shorter. Default true.
   */
  readonly spin?: boolean | undefined;
  /**
   * Worker engine, in a bundled program: the file that the bundler made of `rocev2/engine-thread`, as a URL or an
   * absolute path. Default: `engine-thread.js` next to the bundle; programs that are not bundled have it in the package
   * (docs/how-to/deploy.md).
   */
  readonly workerUrl?: string | URL | undefined;
  /**
   * Modules that register rate controls or recovery schemes: URLs, or absolute paths (docs/extending.md). They are
   * loaded before the device is opened, here and in the thread of a worker engine. Each module is loaded once; later
   * devices also have its schemes.
   */
  readonly extensions?: ReadonlyArray<string | URL> | undefined;
  /**
   * Packets are authentic and encrypted, between peers that authenticate each other (docs/security.md). Such a device
   * only supports TCP exchanges of this package: RDMA CM, perftest and other stacks cannot take part. Not together with
   * `io: 'shm'`. Default `off`.
   */
  readonly secure?: SecureOptions | 'off' | undefined;
  /**
   * Traces every work request of RC and UC queue pairs, for `rocev2 estats`
   * (packages/dashboard/docs/estats.md). Default: off, which costs nothing.
   */
  readonly estats?: boolean | EstatsOptions | undefined;
}

const DEVICE_OPTIONS: OptionNames<DeviceOptions> = {
  address: true,
  udpPort: true,
  frame: true,
  native: true,
  io: true,
  loss: true,
  seed: true,
  mapRegions: true,
  pcap: true,
  trace: true,
  engine: true,
  spin: true,
  workerUrl: true,
  extensions: true,
  estats: true,
  secure: true,
};
const FRAME_OPTIONS: OptionNames<NonNullable<DeviceOptions['frame']>> = {
  local: true,
  remote: true,
  mtuBytes: true,
  rateBps: true,
  dscpToPriority: true,
};

/**
 * Opens a software RDMA NIC on an IP address of this host.
 *
 *     const device = await openDevice({ address: '127.0.0.1' });
 *
 * The device computes ICRCs with the fastest CRC-32 available, and protects packets with the fastest AES-GCM; the
 * environment variables `ROCEV2_CRC32` and `ROCEV2_CIPHER` select one (docs/performance.md, docs/security.md).
 *
 * Two endpoints on one host use two addresses (`127.0.0.1` and `127.0.0.2`), or one address and two UDP ports. Rejects
 * with ERR_ROCE_IO if the UDP port is taken or the address is not local. Rejects with ERR_ROCE_INVALID_ARGUMENT without
 * an address, ERR_ROCE_MALFORMED for an invalid one. Rejects with ERR_ROCE_UNKNOWN_NAME or ERR_ROCE_CONFLICT for other
 * invalid options, ERR_ROCE_UNSUPPORTED if this system lacks a feature that they need. Rejects with
 * ERR_ROCE_INVALID_ARGUMENT for an extension that throws, ERR_ROCE_NOT_FOUND for a missing one, or in a bundle without
 * the file of `workerUrl`, or without telemetry.
 */
export async function openDevice(options: DeviceOptions): Promise<RdmaDevice> {
  if (typeof options?.address !== 'string') {
    throw new RoceError(
      'ERR_ROCE_INVALID_ARGUMENT',
      'a device needs an address',
      "openDevice({ address: '127.0.0.1' })",
    );
  }
  checkOptions('openDevice', options, DEVICE_OPTIONS);
  if (options.frame !== undefined) checkOptions('frame of openDevice', options.frame, FRAME_OPTIONS);
  const { engine = 'inline', spin = true, workerUrl, extensions = [], estats, secure = 'off', ...plain } = options;
  checkPortOptions(plain);
  checkBoolean('spin', spin);
  checkKind('extensions', extensions, Array.isArray(extensions), 'a list of URLs or absolute paths');
  const security = secure === 'off' ? undefined : new DeviceSecurity(secure);
  const port = { ...plain, ...(security !== undefined && { protection: security.mode }) };
  checkName('engine', engine, ENGINES);
  checkName('io', port.io ?? 'auto', PORT_IOS);
  const thread = workerUrl === undefined ? undefined : new URL(moduleHref('workerUrl', workerUrl));
  const telemetry = estats === undefined || estats === false ? undefined : await telemetryFor(estats);
  await loadExtensions(extensions);
  if (security?.keyLog !== undefined) await security.beginKeyLog(await SECURE_PORTS.load());
  const link =
    engine === 'worker'
      ? await WorkerEngine.open({ io: autoIo(port), ...port }, spin, thread)
      : new InlineEngine(await openPort(port), systemRandom());
  const device = await (telemetry === undefined ? RdmaDevice.over(link) : telemetry(link, engine));
  device.security = security;
  return device;
}

const UDP_PORT_MAX = 65_535;
const SEED_MAX = 0xffff_ffff;
const FRAME_MTU_MIN = 576;

function checkPortOptions({ udpPort, frame, native, mapRegions, loss, seed, pcap, trace }: PortOptions): void {
  ifGiven(mapRegions, (value) => checkBoolean('mapRegions', value));
  ifGiven(udpPort, (value) => checkWhole('udpPort', value, 0, UDP_PORT_MAX));
  ifGiven(native, (value) => checkName('native', value, ['auto', 'off']));
  ifGiven(seed, (value) => checkWhole('seed', value, 0, SEED_MAX));
  for (const [name, text] of Object.entries({ loss, pcap, trace })) ifGiven(text, (value) => checkText(name, value));
  if (frame === undefined) return;
  checkText('frame.local', frame.local);
  checkText('frame.remote', frame.remote);
  ifGiven(frame.mtuBytes, (value) => checkWhole('frame.mtuBytes', value, FRAME_MTU_MIN, UDP_PORT_MAX));
  ifGiven(frame.dscpToPriority, (value) => {
    checkObject('frame.dscpToPriority', value, 'an object of DSCPs and priorities: {26: 3}');
  });
  ifGiven(frame.rateBps, (value) => {
    if (!(Number.isFinite(value) && value > 0)) {
      const hint = 'it must be bits per second above 0';
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `frame.rateBps is ${shown(value)}`, hint);
    }
  });
}

async function telemetryFor(estats: true | EstatsOptions) {
  const { openWatchedDevice, telemetryWanted } = await TELEMETRY.load();
  const wanted = telemetryWanted(estats);
  return (link: EngineLink, engine: EngineName) => openWatchedDevice(link, engine, wanted);
}

/** A name that is not known must not pass for the default. */
function checkName(option: string, name: string, names: readonly string[]): void {
  if (names.includes(name)) return;
  throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `${option} is ${shown(name)}`, namesHint(name, names, 'it is one of'));
}

function autoIo({ frame, native }: PortOptions): 'auto' | 'dgram' {
  return frame === undefined && native !== 'off' ? 'auto' : 'dgram';
}
