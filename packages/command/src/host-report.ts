import { createSocket } from 'node:dgram';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { crc32Backend } from 'rocev2/internal/core';
import { batchedUdpAvailable, nativeUdpAvailable, pathMtuForLink } from 'rocev2/internal/dgram-ext';
import { chooseCipher, chooseCrc32 } from 'rocev2/internal/driver';
import { IpAddress } from 'rocev2/internal/packet';
import { ROCE_UDP_PORT } from 'rocev2/internal/port';

/** An address that a device can be opened on. */
export interface HostAddress {
  /** Name of the network interface. */
  readonly interface: string;
  /** IPv4 or IPv6, as text. */
  readonly address: string;
  /** The GID that RoCEv2 makes of it, 32 hex digits. */
  readonly gid: string;
  /** MTU of the link in bytes; null where the system does not tell. */
  readonly linkMtu: number | null;
  /** Largest RoCE path MTU that fits the link, 256..4096; null where the link's is not known. */
  readonly pathMtu: number | null;
}

/** Whether something can be had here. */
export interface Ability {
  /** It can. */
  readonly available: boolean;
  /** Why it cannot; empty where it can. */
  readonly reason: string;
}

/** UDP port 4791 of one address family. */
export interface RocePort {
  /** 4 or 6. */
  readonly family: 4 | 6;
  /** A program can have the port on all addresses. */
  readonly free: boolean;
  /** Why it cannot, as the system says; empty where it can. */
  readonly reason: string;
  /** The process that has the port. Missing: none has, or it belongs to another user. */
  readonly holder?: PortHolder;
}

/** A process that has a port. */
export interface PortHolder {
  /** Its process ID. */
  readonly pid: number;
  /** Its command line. */
  readonly command: string;
}

/** The fields of `info --json`. */
export interface HostReport {
  /** Addresses of interfaces that are up. */
  readonly addresses: readonly HostAddress[];
  /** Datagrams in batches, with GSO and GRO, ECN and DSCP: `--io mmsg`. */
  readonly batchedUdp: Ability;
  /** Socket options through koffi, without which other peers drop our packets over IPv4. */
  readonly socketOptions: Ability;
  /** Implementation of CRC-32 for ICRCs. */
  readonly crc32: string;
  /** Implementation of AES-GCM for protected packets (`--secure`). */
  readonly cipher: string;
  /** UDP port 4791. */
  readonly ports: readonly RocePort[];
  /** Kernel modules that are loaded and use UDP 4791 or the names of RDMA devices. */
  readonly kernelModules: readonly string[];
  /** Kernel settings by name; null where they cannot be read. */
  readonly limits: Readonly<Record<string, number | null>>;
}

const COMMAND_LINE_MAX = 200;
const MODULES = ['rdma_rxe', 'siw', 'mlx4_ib', 'mlx5_ib', 'bnxt_re', 'irdma', 'qedr', 'hns_roce'];
const LIMITS = ['net.core.rmem_max', 'net.core.wmem_max', 'net.core.netdev_max_backlog', 'fs.nr_open'];

/** Inspects this host; takes some hundredths of a second, sends nothing. */
export async function hostReport(): Promise<HostReport> {
  chooseCrc32();
  return {
    addresses: hostAddresses(),
    batchedUdp: ability(batchedUdpAvailable()),
    socketOptions: ability(nativeUdpAvailable()),
    crc32: crc32Backend(),
    cipher: chooseCipher().name,
    ports: [await rocePort(4), await rocePort(6)],
    kernelModules: loadedModules(),
    limits: Object.fromEntries(LIMITS.map((name) => [name, sysctl(name)])),
  };
}

function ability(reason: string | undefined): Ability {
  return { available: reason === undefined, reason: reason ?? '' };
}

function hostAddresses(): HostAddress[] {
  return Object.entries(networkInterfaces()).flatMap(([name, entries = []]) => {
    const linkMtu = number(`/sys/class/net/${name}/mtu`);
    const pathMtu = linkMtu === null ? null : pathMtuForLink(linkMtu);
    return entries.map(({ address }) => {
      const { gidHex: gid } = IpAddress.parse(address);
      return { interface: name, address, gid, linkMtu, pathMtu };
    });
  });
}

async function rocePort(family: 4 | 6): Promise<RocePort> {
  const socket = createSocket(family === 4 ? { type: 'udp4' } : { type: 'udp6', ipv6Only: true });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.bind(ROCE_UDP_PORT, resolve);
    });
    return { family, free: true, reason: '' };
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
    const holder = holderOf(family, ROCE_UDP_PORT);
    return { family, free: false, reason, ...(holder && { holder }) };
  } finally {
    socket.close();
  }
}

/** From /proc, which shows the files of other users only to root. */
function holderOf(family: 4 | 6, port: number): PortHolder | undefined {
  const hex = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const tables = family === 4 ? ['udp', 'udp6'] : ['udp6'];
  const rows = tables.flatMap((name) => (read(`/proc/net/${name}`) ?? '').split('\n').slice(1));
  const fields = rows.map((row) => row.trim().split(/\s+/)).filter(([, local]) => local?.endsWith(hex) === true);
  const sockets = new Set(fields.map((row) => `socket:[${row[9]}]`));
  if (sockets.size === 0) return undefined;
  const pid = filesIn('/proc')
    .filter((name) => /^\d+$/.test(name))
    .find((name) => filesIn(`/proc/${name}/fd`).some((fd) => sockets.has(linkOf(`/proc/${name}/fd/${fd}`))));
  if (pid === undefined) return undefined;
  const command = (read(`/proc/${pid}/cmdline`) ?? '').replaceAll('\0', ' ').trim();
  return { pid: Number(pid), command: command.slice(0, COMMAND_LINE_MAX) };
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

function loadedModules(): string[] {
  const text = read('/proc/modules') ?? '';
  const loaded = new Set(text.split('\n').map((line) => line.split(' ')[0]));
  return MODULES.filter((name) => loaded.has(name));
}

function sysctl(name: string): number | null {
  return number(`/proc/sys/${name.replaceAll('.', '/')}`);
}

function number(path: string): number | null {
  const text = read(path);
  return text === undefined ? null : Number(text);
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
}
