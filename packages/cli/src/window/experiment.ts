import { ChildService, type Copies, fillPattern, type NicFlags, reportCopies, whileAlive } from '@rocev2/command';
import { dial, exchangeAsClient } from 'rocev2/internal/cm';
import { crc32, NS_PER_S } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { Access, type MemoryRegion } from 'rocev2/internal/verbs';
import { BlockRequester, PoolWriter } from 'rocev2/internal/window';
import { LOOPBACK, openWindowEnd, type WindowEnd } from './end.js';
import type { WindowPolicy } from './policies.js';
import type { WindowServerService } from './server-process.js';

interface WindowSettings {
  readonly policy: WindowPolicy;
  readonly blocks: number;
  readonly blockBytes: number;
  readonly totalBytes: number;
  readonly blocksMax: number;
  readonly mas: number;
  readonly matNs: number;
  readonly nic: NicFlags;
}

export interface WindowRun {
  readonly interrupted: AbortSignal;
  onSent(bytes: number): void;
  note(text: string): void;
}

/** The fields of `window --json`. */
export interface WindowResult {
  /** Release policy, or the baseline. */
  readonly policy: WindowPolicy;
  /** Blocks in the pool at the end. */
  readonly blocks: number;
  /** Size of a block: m. */
  readonly blockBytes: number;
  /** Bytes written. */
  readonly totalBytes: number;
  /** Duration. */
  readonly seconds: number;
  /** `totalBytes` in bits, divided by `seconds`. */
  readonly goodputBps: number;
  /** Acknowledgements, requests and replies in both directions, without the descriptions of the pool. */
  readonly controlMessages: number;
  /** How often data waited because no block was free. */
  readonly windowStalls: number;
  /** Whether the server received every byte, with the right digest. */
  readonly verified: boolean;
  /** What the client did by copies to mapped regions. */
  readonly copies: Copies;
}

const GROW_AFTER_STALLS = 8;

/** Different blocks in turn, so that a misplaced block is noticed. */
const SOURCE_BLOCKS_MIN = 3;

export async function runWindow(settings: WindowSettings, run: WindowRun): Promise<WindowResult> {
  await using server = new ChildService<WindowServerService>('server', new URL('./server-process.js', import.meta.url));
  return await whileAlive([server], unlessFailed(server, writeAll(server, settings, run)));
}

/** If it fails because the server has, the server's own error counts. */
async function unlessFailed<T>(server: ChildService<WindowServerService>, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    await server.call('failed', {});
    throw error;
  }
}

async function writeAll(
  server: ChildService<WindowServerService>,
  settings: WindowSettings,
  run: WindowRun,
): Promise<WindowResult> {
  const { policy, blocks, blockBytes, blocksMax, mas, matNs, nic } = settings;
  const port = await server.call('listen', { policy, blocks, blocksMax, blockBytes, mas, matNs, nic });
  const channel = await dial(LOOPBACK, port);
  const end = await openWindowEnd(channel, blocksMax, exchangeAsClient, nic);
  try {
    const writer =
      policy === 'baseline'
        ? new BlockRequester(end.link)
        : new PoolWriter(end.link, {
            blocksMax,
            ...(blocksMax > blocks && { growAfterStalls: GROW_AFTER_STALLS }),
          });
    await channel.receive();
    if (writer instanceof PoolWriter) await writer.ready;
    const sourceBlocks = Math.max(2 * blocksMax, SOURCE_BLOCKS_MIN);
    const source = await end.pd.regMr(sourceBlocks * blockBytes, Access.LOCAL_WRITE);
    fillPattern(source.bytes, 0);
    const setUpMessages = end.link.counters.sent;
    const { totalBytes, seconds, digest } = await pump(writer, source, settings, run);
    const result = await settled(server, totalBytes);
    const descriptions = policy === 'baseline' ? 0 : 1;
    return {
      policy,
      blocks: writer instanceof PoolWriter ? writer.blocks : blocks,
      blockBytes,
      totalBytes,
      seconds,
      goodputBps: (totalBytes * 8) / seconds,
      controlMessages: result.controlMessages + end.link.counters.sent - setUpMessages - descriptions,
      windowStalls: writer instanceof PoolWriter ? writer.windowStalls : 0,
      verified: result.digest === digest && result.received === totalBytes,
      copies: reportCopies(run, end.device.counters()),
    };
  } finally {
    await server.call('close', {}).catch(() => {});
    await close(end);
    channel.close();
  }
}

async function pump(
  writer: { write(source: MemoryRegion, offset: number, length: number): Promise<void> },
  source: MemoryRegion,
  { policy, blockBytes, totalBytes }: WindowSettings,
  { interrupted, onSent }: WindowRun,
): Promise<{ totalBytes: number; seconds: number; digest: number }> {
  const blocks = source.length / blockBytes;
  const under = Array<Promise<void> | undefined>(blocks).fill(undefined);
  const lengths: number[] = [];
  const startNs = nowNs();
  let sent = 0;
  for (let n = 0; sent < totalBytes && !interrupted.aborted; n++) {
    const place = n % blocks;
    await under[place];
    const length = Math.min(blockBytes, totalBytes - sent);
    const write = writer.write(source, place * blockBytes, length);
    write.catch(() => {}); // Awaited below, or when its slot is used again.
    if (policy === 'baseline') await write;
    under[place] = write;
    lengths.push(length);
    sent += length;
    onSent(sent);
  }
  await Promise.all(under);
  const seconds = (nowNs() - startNs) / NS_PER_S;
  return { totalBytes: sent, seconds, digest: digestOf(source.bytes, blockBytes, lengths) };
}

function digestOf(bytes: Buffer, blockBytes: number, lengths: readonly number[]): number {
  const blocks = bytes.length / blockBytes;
  const word = Buffer.alloc(4);
  let digest = 0;
  lengths.forEach((length, n) => {
    const begin = (n % blocks) * blockBytes;
    word.writeUInt32BE(crc32(bytes.subarray(begin, begin + length)));
    digest = crc32(word, digest);
  });
  return digest;
}

/** A written block is acknowledged by the server's NIC before its program has emptied it. */
async function settled(server: ChildService<WindowServerService>, totalBytes: number) {
  const attempts = 100;
  for (let attempt = 1; ; attempt++) {
    const result = await server.call('result', {});
    if (result.received >= totalBytes || attempt === attempts) return result;
  }
}

async function close({ qp, link, device }: WindowEnd): Promise<void> {
  link.close();
  await qp.close();
  await device.close();
}
