import { backendParameters, resolveHost } from '@rocev2/command';
import { checkOptions, parseCount, parseHost, RoceError } from 'rocev2/internal/core';
import type { BlockDevice } from 'rocev2/internal/disk';
import { IpAddress } from 'rocev2/internal/packet';
import { openNvme } from '../live/open-nvme.js';
import { NVME_PORT } from '../opcodes.js';
import type { NvmeTransport } from '../target-connection.js';
import { openHostDevice } from './host-device.js';
import { failToConnect } from './refused-connect.js';
import { type NvmeHostKeyFlags, readHostKeys } from './secrets-file.js';

export interface OpenedDisk extends AsyncDisposable {
  readonly disk: BlockDevice;
}

export interface NvmeUri extends NvmeHostKeyFlags {
  readonly transport: NvmeTransport;
  readonly host: string;
  readonly port: number;
  readonly nqn: string;
  readonly nsid: number;
  readonly bind?: IpAddress;
}

const FORM = 'nvme+tcp://HOST[:PORT]/NQN or nvme+rdma://HOST[:PORT]/NQN';
type Parameter = 'nsid' | 'bind' | 'host-nqn' | 'dhchap-keys' | 'tls-keys';
const PARAMETERS = { nsid: true, bind: true, 'host-nqn': true, 'dhchap-keys': true, 'tls-keys': true } as const;

export function parseNvmeUri(text: string): NvmeUri {
  const match = /^nvme\+(rdma|tcp):\/\/([^/?]+)\/([^?]+)(?:\?(.*))?$/.exec(text);
  if (match === null) throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is not a namespace`, FORM);
  const [, transport, authority, nqn, query] = match;
  const { host, port = NVME_PORT } = parseHost(authority);
  const given: Partial<Record<Parameter, string>> = backendParameters(query);
  checkOptions('a namespace', given, PARAMETERS);
  const { nsid = '1', bind, 'host-nqn': hostNqn, 'dhchap-keys': dhchapKeys, 'tls-keys': tlsKeys } = given;
  return {
    transport: transport as NvmeTransport,
    host,
    port,
    nqn: decodeURIComponent(nqn),
    nsid: parseCount(nsid, 1),
    ...(bind !== undefined && { bind: IpAddress.parse(bind) }),
    ...(hostNqn !== undefined && { hostNqn }),
    ...(dhchapKeys !== undefined && { dhchapKeys }),
    ...(tlsKeys !== undefined && { tlsKeys }),
  };
}

export async function openNvmeBackend(text: string, onNotice: (notice: string) => void): Promise<OpenedDisk> {
  const { transport, host, port, nqn, nsid, bind, ...flags } = parseNvmeUri(text);
  const keys = await readHostKeys(flags, [transport]);
  const who = flags.hostNqn === undefined ? {} : { hostNqn: flags.hostNqn };
  const address = await resolveHost(host);
  const device = transport === 'rdma' ? await openHostDevice(address, bind, { engine: 'worker' }) : undefined;
  try {
    const disk = await openNvme({
      address,
      port,
      nqn,
      nsid,
      ...who,
      ...keys,
      onNotice,
      ...(device !== undefined && { device }),
    }).catch(failToConnect);
    return {
      disk,
      [Symbol.asyncDispose]: async () => {
        await disk.close();
        await device?.close();
      },
    };
  } catch (error) {
    await device?.close();
    throw error;
  }
}
