/**
 * The files of /sys/class/infiniband/DEVICE that programs read themselves, in a folder to which their calls are
 * redirected.
 */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import type { IpAddress } from 'rocev2/internal/packet';

const PORT = 'ports/1';

/** The network interface that has an address; all of 127.0.0.0/8 is on the loopback interface. */
export function interfaceOf({ text }: IpAddress): string {
  const interfaces = Object.entries(networkInterfaces());
  const found = interfaces.find(([, addresses]) => addresses?.some(({ address }) => address === text));
  return found?.[0] ?? 'lo';
}

/** 0 where Linux does not say. */
export function interfaceIndex(name: string): number {
  try {
    return Number(readFileSync(`/sys/class/net/${name}/ifindex`, 'utf8'));
  } catch {
    return 0;
  }
}

/** Removes the folder. */
export function removeSysfs(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

export function writeSysfs(folder: string, address: IpAddress): void {
  const groups = Buffer.from(address.gid).toString('hex').match(/.{4}/g)!;
  const guid = groups.slice(4).join(':');
  const interfaceName = interfaceOf(address);
  const files: Readonly<Record<string, string>> = {
    node_type: '1: CA',
    node_guid: guid,
    sys_image_guid: guid,
    node_desc: 'rocev2',
    fw_ver: 'rocev2',
    hca_type: 'rocev2',
    board_id: 'rocev2',
    'device/numa_node': '-1',
    [`${PORT}/state`]: '4: ACTIVE',
    [`${PORT}/phys_state`]: '5: LinkUp',
    [`${PORT}/link_layer`]: 'Ethernet',
    [`${PORT}/rate`]: '10 Gb/sec (4X SDR)',
    [`${PORT}/lid`]: '0x0',
    [`${PORT}/sm_lid`]: '0x0',
    [`${PORT}/cap_mask`]: '0x00010000',
    [`${PORT}/pkeys/0`]: '0xffff',
    [`${PORT}/gids/0`]: groups.join(':'),
    [`${PORT}/gid_attrs/types/0`]: 'RoCE v2',
    [`${PORT}/gid_attrs/ndevs/0`]: interfaceName,
    [`device/net/${interfaceName}/address`]: '00:00:00:00:00:00',
  };
  removeSysfs(folder);
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, `${text}\n`);
  }
}
