import type { Command } from 'commander';
import type { IpAddress } from 'rocev2/internal/packet';
import { type FlowOptions, TRAFFIC_CLASSES, type TrafficClass } from 'rocev2/internal/storage-rpc';
import { openDevice, type RdmaDevice } from 'rocev2/internal/verbs';
import { addFaultsOption } from '../aliased-option.js';
import { addExtensionOption } from '../extensions.js';
import { addNetworkOptions } from '../help-format.js';
import { addIoNicOptions, type NicFlags, nicOf } from '../nic-options.js';
import { addressOption, countOption, portOption, portOrAnyOption, rangeOption } from '../options.js';
import { addRecoveryOptions, type RecoveryFlags, recoveryOf } from '../recovery-options.js';
import { addSecureOptions, type SecureFlags, secureOf } from '../secure-options.js';
import { addHttpTelemetryOption, estatsOf, type TelemetryFlags } from '../telemetry-options.js';
import { addRateControlOptions, type RateControlFlags, rateControlOf } from '../transfer/rate-control.js';

/** `--estats` of servers and gateways. */
export function addTelemetryOption(command: Command): Command {
  return addHttpTelemetryOption(command).option(
    '--estats',
    "publish disk and RDMA device for 'rocev2 dashboard --attach' (packages/dashboard/docs)",
  );
}

/** Limit from Ctrl-C to the end, for answering clients, waiting for the server, and syncing written data. */
export const DISK_CLOSING_MS = 15_000;

const DISK_PORT = 18520;

/** The options in the program's units. */
export interface RdmaOptions extends NicFlags, RecoveryFlags, RateControlFlags, SecureFlags, TelemetryFlags {
  /** TCP port for connection setup. */
  readonly port: number;
  /** IP address of this side. */
  readonly bind?: IpAddress;
  /** UDP port of this side; default 4791. */
  readonly udpPort?: number;
  /** DSCP of what this side sends, or a traffic class. */
  readonly dscp?: number | TrafficClass;
  /** Fault rules on this side. */
  readonly faults?: string;
  /** Seed of random fault rules. */
  readonly seed?: number;
}

/** Adds the options, and those of the NIC, to a command. */
export function addRdmaOptions(command: Command): Command {
  command
    .option('-p, --port <port>', 'TCP port for connection setup', portOption, DISK_PORT)
    .option(
      '--bind <address>',
      'IP address of this side (default: 127.0.0.1; client: from the routing table)',
      addressOption,
    );
  addNetworkOptions(command, (group) => {
    group.option(
      '--udp-port <port>',
      'UDP port of this side, for hosts with one address; 0: the system chooses (default: 4791)',
      portOrAnyOption,
    );
    addFaultsOption(group, 'fault rules on this side, e.g. random=0.001 (docs/faults.md)', ['--loss'])
      .option('--seed <n>', 'seed for random fault rules', countOption)
      .option(
        '--dscp <class>',
        `DSCP of RDMA packets: ${Object.keys(TRAFFIC_CLASSES).join(', ')} or 0 to 63`,
        dscpOption,
      );
  });
  addRateControlOptions(addRecoveryOptions(addIoNicOptions(command)));
  return addSecureOptions(addExtensionOption(command));
}

/** How the connections of this side send. Throws ERR_ROCE_UNKNOWN_NAME for parameters that a scheme does not have. */
export function flowOf(options: RdmaOptions): FlowOptions {
  const { cc, rate, ccParams, dscp } = options;
  return {
    recovery: recoveryOf(options),
    ...((cc !== 'none' || rate !== undefined || ccParams !== undefined) && { rateControl: rateControlOf(options) }),
    ...(dscp !== undefined && { dscp }),
  };
}

function dscpOption(text: string): number | TrafficClass {
  return Object.hasOwn(TRAFFIC_CLASSES, text) ? (text as TrafficClass) : DSCP_NUMBER(text);
}
const DSCP_NUMBER = rangeOption(0, 63);

/** Opens the device; rejects as `openDevice` does, and for credentials as {@link secureOf}. */
export async function openStorageDevice(
  at: { readonly address: string; readonly udpPort?: number },
  options: Pick<RdmaOptions, 'faults' | 'seed' | keyof NicFlags | keyof SecureFlags | keyof TelemetryFlags>,
): Promise<RdmaDevice> {
  const { faults, seed } = options;
  return openDevice({
    ...at,
    ...nicOf(options),
    estats: estatsOf(options),
    ...(faults !== undefined && { loss: faults }),
    ...(seed !== undefined && { seed }),
    ...(await secureOf(options)),
  });
}
