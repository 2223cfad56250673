import { RpcError } from '@rocev2/rpc';
import {
  areBlocksIntact,
  BLOCK_BYTES,
  blocksOf,
  crcsIn,
  dataAt,
  HEADER_BYTES,
  headBytesIn,
  intactRecordsIn,
  readHead,
  readRecords,
  type WholeRecord,
} from '../record.js';
import type { Blocks } from '../replica.js';
import type { CodedExtent, CodedReader } from './coded-reader.js';

export async function codedBlocks(
  reader: CodedReader,
  coded: CodedExtent,
  { offset, first, count }: { readonly offset: number; readonly first: number; readonly count: number },
): Promise<Blocks> {
  if (offset >= coded.length) throw new RpcError('MISSING', `extent ${coded.extent} has nothing at ${offset}`);
  const bytes = (from: number, to: number) => reader.bytes(coded, offset + from, Math.min(offset + to, coded.length));
  const start = await bytes(0, HEADER_BYTES);
  const headBytes = headBytesIn(start);
  const list = headBytes === undefined ? start : await bytes(0, headBytes);
  const head = readHead(list, coded.extent, offset);
  if (head === undefined) throw damaged(coded, offset);
  const end = first + count;
  if (first < 0 || count < 1 || end > blocksOf(head.length))
    throw new RpcError('INVALID', `the record at ${offset} has ${blocksOf(head.length)} blocks`);
  const at = dataAt(head.length);
  const data = await bytes(at + first * BLOCK_BYTES, at + Math.min(end * BLOCK_BYTES, head.length));
  const crcs = crcsIn(list, first, end);
  if (!areBlocksIntact(data, crcs)) throw damaged(coded, offset);
  return { data, crcs };
}

export async function codedRecords(
  reader: CodedReader,
  coded: CodedExtent,
  offset: number,
  bytesMax: number,
): Promise<WholeRecord[]> {
  const read = (count: number) => reader.bytes(coded, offset, Math.min(offset + count, coded.length));
  const records = [...intactRecordsIn(await readRecords(read, bytesMax), coded.extent, offset)];
  if (records.length === 0) throw damaged(coded, offset);
  return records;
}

function damaged({ extent }: CodedExtent, offset: number): RpcError {
  return new RpcError('DAMAGED', `the fragments of extent ${extent} give no intact record at ${offset}`);
}
