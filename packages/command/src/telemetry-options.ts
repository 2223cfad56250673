import type { Command } from 'commander';
import { RoceError } from 'rocev2/internal/core';
import { allowHostOption } from './options.js';

/** Telemetry of a program with an RDMA device. */
export interface TelemetryFlags {
  /** Collect telemetry. */
  readonly estats?: boolean;
  /** `HOST:PORT` where the telemetry of the device is served over HTTP. */
  readonly estatsHttp?: string;
  /** Host names that HTTP requests may have. */
  readonly allowHost?: readonly string[];
}

/** `--estats-http` and `--allow-host` of servers. */
export function addHttpTelemetryOption(command: Command): Command {
  return command
    .option(
      '--estats-http <host:port>',
      'serve /healthz, /metrics (Prometheus) and /estats.json of the RDMA device at this address',
    )
    .addOption(allowHostOption());
}

/** The option `estats` of a device. */
export function estatsOf({ estats = false, estatsHttp, allowHost }: TelemetryFlags) {
  return estatsHttp === undefined ? estats : { http: estatsHttp, ...(allowHost && { allowHosts: allowHost }) };
}

/** For programs that were started without an RDMA device. */
export function noDeviceForHttp(): RoceError {
  const text = '--estats-http serves the telemetry of an RDMA device, and this program has none';
  return new RoceError('ERR_ROCE_CONFLICT', text, 'leave it out, or use RDMA');
}
