import { CommandFailure, EXIT_USAGE, readJsonFile } from '@rocev2/command';
import { plainWords, size } from '@rocev2/command/schema';
import { parseCount, parseSizeBytes, RoceError } from 'rocev2/internal/core';
import { checkDiskName, PROVISIONS } from 'rocev2/internal/disk';
import { z } from 'zod';

const count = z.number().int().positive();

const entrySchema = z.strictObject({
  name: z.string(),
  backend: z.string(),
  size: size.exactOptional(),
  readOnly: z.boolean().exactOptional(),
  create: z.boolean().exactOptional(),
  provision: z.enum(PROVISIONS).exactOptional(),
  tableMemory: size.exactOptional(),
  scrub: size.exactOptional(),
  iops: count.exactOptional(),
  bandwidth: size.exactOptional(),
});

const fileSchema = z.strictObject({ disks: z.array(entrySchema) });

export type DiskEntry = z.output<typeof entrySchema>;

const SUFFIX = /,(read-only|create|(?:size|provision|table-memory|scrub|iops|bandwidth)=[^,]*)$/;

export function parseDiskEntry(text: string): DiskEntry {
  const at = text.indexOf('=');
  if (at < 1)
    throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is not a disk`, 'write NAME=STORE, e.g. db=file:/srv/db');
  const name = text.slice(0, at);
  const entry: Record<string, unknown> = { name };
  let backend = text.slice(at + 1);
  for (let match = SUFFIX.exec(backend); match !== null; match = SUFFIX.exec(backend)) {
    backend = backend.slice(0, match.index);
    Object.assign(entry, suffixOf(match[1]));
  }
  const parsed = entrySchema.safeParse({ ...entry, backend });
  if (!parsed.success) throw new RoceError('ERR_ROCE_MALFORMED', `the disk '${name}': ${problemsOf(parsed.error)}`);
  return checked(parsed.data);
}

function suffixOf(text: string): Record<string, unknown> {
  const [name, value] = text.split('=');
  switch (name) {
    case 'read-only':
      return { readOnly: true };
    case 'create':
      return { create: true };
    case 'table-memory':
      return { tableMemory: parseSizeBytes(value) };
    case 'iops':
      return { iops: parseCount(value, 1) };
    case 'provision':
      return { provision: value };
    default:
      return { [name]: parseSizeBytes(value) };
  }
}

export async function readDiskFile(path: string): Promise<DiskEntry[]> {
  const parsed = fileSchema.safeParse(await readJsonFile(path));
  if (parsed.success) return parsed.data.disks.map(checked);
  throw new CommandFailure(EXIT_USAGE, `${path} is not a list of disks: ${problemsOf(parsed.error)}`);
}

export function diskFileText(entries: readonly DiskEntry[]): string {
  return `${JSON.stringify({ disks: entries }, undefined, 2)}\n`;
}

export function checkNames(entries: readonly DiskEntry[]): void {
  const names = new Set<string>();
  for (const { name } of entries) {
    if (names.has(name)) throw new RoceError('ERR_ROCE_CONFLICT', `two disks have the name '${name}'`);
    names.add(name);
  }
}

function checked(entry: DiskEntry): DiskEntry {
  if (entry.name === '') throw new RoceError('ERR_ROCE_MALFORMED', 'a disk has no name');
  checkDiskName(entry.name);
  return entry;
}

function problemsOf(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join('.') || 'it'} ${plainWords(issue)}`).join('; ');
}
