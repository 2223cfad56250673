/** `--backend nvme+...`: a namespace of an NVMe over Fabrics target. */

import { RoceError } from '../../core/errors.js';
import { parseCount } from '../../core/units.js';
import { IpAddress } from '../../packet/address.js';
import type { BlockDevice } from '../../storage-rpc/disk/block-device.js';
import { openNvme } from '../../storage-rpc/live/open-nvme.js';
import { NVME_PORT } from '../../storage-rpc/nvme/opcodes.js';
import type { NvmeTransport } from '../../storage-rpc/nvme/target-connection.js';
import { openDevice } from '../../verbs/open-device.js';
import { localAddressTowards } from '../local-address.js';
import { resolveHost } from '../resolve-host.js';

/** A disk, and what was opened for it. */
export interface OpenedDisk extends AsyncDisposable {
  /** Takes requests. */
  readonly disk: BlockDevice;
}

/** A namespace of a target. */
export interface NvmeUri {
  /** Which transport. */
  readonly transport: NvmeTransport;
  /** Host name or address. */
  readonly host: string;
  /** Port of the target. */
  readonly port: number;
  /** NQN of the subsystem. */
  readonly nqn: string;
  /** Namespace ID. */
  readonly nsid: number;
}

/** Reads `nvme+TRANSPORT://HOST[:PORT]/NQN[?nsid=N]`; undefined for a text that is none. */
export function parseNvmeUri(text: string): NvmeUri | undefined {
  const match = /^nvme\+(rdma|tcp):\/\/(\[[^\]]+\]|[^:/?]+)(?::(\d+))?\/([^?]+)(?:\?nsid=(\d+))?$/.exec(text);
  if (match === null) return undefined;
  const [, transport, host, port = `${NVME_PORT}`, nqn, nsid = '1'] = match;
  return {
    transport: transport as NvmeTransport,
    host: host.replace(/^\[(.*)\]$/, '$1'),
    port: parseCount(port, 1, 65_535),
    nqn: decodeURIComponent(nqn),
    nsid: parseCount(nsid, 1),
  };
}

/** Opens the namespace that `text` names; `onNotice` is told of outages. Rejects as `openNvme` does, and with ERR_ROCE_MALFORMED for a text that names none. */
export async function openNvmeBackend(text: string, onNotice: (notice: string) => void): Promise<OpenedDisk> {
  const uri = parseNvmeUri(text);
  if (uri === undefined) {
    const hint = 'nvme+tcp://HOST[:PORT]/NQN or nvme+rdma://HOST[:PORT]/NQN';
    throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is not a namespace`, hint);
  }
  const { transport, host, ...rest } = uri;
  const address = await resolveHost(host);
  const local = transport === 'rdma' ? await localAddressTowards(IpAddress.parse(address)) : undefined;
  const device = local === undefined ? undefined : await openDevice({ address: local.text, engine: 'worker' });
  try {
    const disk = await openNvme({ address, ...rest, onNotice, ...(device !== undefined && { device }) });
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
