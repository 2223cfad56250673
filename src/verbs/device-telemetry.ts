import { checkOptions, type OptionNames } from '../core/arguments.js';
import { NS_PER_MS } from '../core/units.js';
import { parseUdpEndpoint } from '../dgram-ext/udp-endpoint.js';
import { wallMs } from '../driver/system-clock.js';
import type { EngineLink } from '../memory/ring/engine-link.js';
import { RdmaDevice } from './device.js';
import { type EndpointServer, type EndpointServerOptions, serveEstats } from './estats/endpoint-server.js';
import { Estats } from './estats/estats.js';
import type { EndpointIdentity } from './estats/snapshot.js';

/** How the telemetry of a device is served, in addition to its control socket. */
export interface EstatsOptions {
  /**
   * `HOST:PORT` where `/metrics` (Prometheus) and `/estats.json` are served to all that can connect. Default: not
   * served.
   */
  readonly http?: string | undefined;
  /**
   * With `http`: names by which it may be addressed, in addition to addresses and `localhost`. A request by another
   * name gets 421.
   */
  readonly allowHosts?: readonly string[] | undefined;
}

const ESTATS_OPTIONS: OptionNames<EstatsOptions> = { http: true, allowHosts: true };

export function telemetryWanted(estats: true | EstatsOptions): EndpointServerOptions {
  if (estats !== true) checkOptions('estats of openDevice', estats, ESTATS_OPTIONS);
  if (estats === true || estats.http === undefined) return {};
  const { host, port } = parseUdpEndpoint(estats.http);
  return { http: { host: host.text, port, ...(estats.allowHosts !== undefined && { allowHosts: estats.allowHosts }) } };
}

export async function openWatchedDevice(
  link: EngineLink,
  engine: EndpointIdentity['engine'],
  options: EndpointServerOptions,
): Promise<RdmaDevice> {
  const nowNs = () => link.nowNs();
  const estats = new Estats({
    nowNs,
    epochMs: wallMs() - nowNs() / NS_PER_MS,
    counters: link.counters,
    refreshCounters: () => link.refreshCounters(),
  });
  const device = await RdmaDevice.over(link, estats);
  const identity = { pid: process.pid, address: device.address.text, port: device.portDescription, engine };
  let server: EndpointServer;
  try {
    server = await serveEstats(estats, identity, options);
  } catch (error) {
    await device.close();
    throw error;
  }
  device.serveTelemetry(server);
  return device;
}
