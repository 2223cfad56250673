import { addressOption, alternatives, choiceOption, portOption, resolveHost } from '@rocev2/command';
import type { Command } from 'commander';
import { SYSTEM_CLOCK } from 'rocev2/internal/driver';
import type { IpAddress } from 'rocev2/internal/packet';
import { NvmeHost } from '../host/nvme-host.js';
import { NvmeDialer } from '../live/nvme-dialer.js';
import { hostAuthentication, hostTlsPsks, newHostName } from '../live/open-nvme.js';
import { NVME_PORT } from '../opcodes.js';
import type { NvmeTransport } from '../target-connection.js';
import { openHostDevice } from './host-device.js';
import { failToConnect } from './refused-connect.js';
import { type NvmeHostKeyFlags, readHostKeys } from './secrets-file.js';

export const NVME_TRANSPORTS = ['rdma', 'tcp'] as const;

export interface NvmeHostFlags extends NvmeHostKeyFlags {
  readonly transport: NvmeTransport;
  readonly port: number;
  readonly bind?: IpAddress;
}

export function addHostOptions(command: Command): Command {
  return addPathOptions(
    command.option('--transport <name>', alternatives(NVME_TRANSPORTS), choiceOption(NVME_TRANSPORTS), 'tcp'),
  );
}

export function addPathOptions(command: Command): Command {
  return command
    .option('-p, --port <port>', 'port of the target', portOption, NVME_PORT)
    .option(
      '--bind <address>',
      'rdma: IP address of this side, which differs from the target (default: from the routing table)',
      addressOption,
    )
    .option('--host-nqn <nqn>', 'NQN of this host (default: a random one)')
    .option('--dhchap-keys <file>', 'secrets of this host: lines HOSTNQN SECRET [CONTROLLERSECRET]')
    .option('--tls-keys <file>', 'tcp: TLS 1.3 by the key of this host: lines HOSTNQN KEY');
}

export async function askController<T>(
  name: string,
  flags: NvmeHostFlags,
  nqn: string,
  ask: (host: NvmeHost) => Promise<T>,
): Promise<T> {
  const { transport, port, bind, hostNqn } = flags;
  const { secret, controllerSecret, tlsKey } = await readHostKeys(flags, [transport]);
  const authentication = hostAuthentication(secret, controllerSecret);
  const tls = hostTlsPsks(tlsKey, hostNqn, nqn);
  const address = await resolveHost(name);
  const device = transport === 'rdma' ? await openHostDevice(address, bind, {}) : undefined;
  try {
    await using dialer = await NvmeDialer.open({
      address,
      port,
      digests: true,
      ...(device && { device }),
      ...(tls && { tls }),
    });
    const host = await NvmeHost.connect({
      ...newHostName(),
      ...(hostNqn !== undefined && { hostNqn }),
      ...(authentication !== undefined && { authentication }),
      dial: (qid, entries) => dialer.dial(qid, entries),
      clock: SYSTEM_CLOCK,
      nqn,
      ioQueues: 0,
      entries: 2,
      keepAliveMs: 0,
    }).catch(failToConnect);
    try {
      return await ask(host);
    } finally {
      await host.close();
    }
  } finally {
    await device?.close();
  }
}
