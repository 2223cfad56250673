/**
 * Reads the dynamic symbols of a 64-bit little-endian ELF library: what it defines, and under which default versions.
 */

import { RoceError } from 'rocev2/internal/core';

const SHT_DYNSYM = 11;
const SHT_GNU_VERDEF = 0x6ffffffd;
const SHT_GNU_VERSYM = 0x6fffffff;
const SYMBOL_BYTES = 24;
const STT_OBJECT = 1;
const STT_FUNC = 2;
const HIDDEN = 0x8000;

export interface DynamicSymbol {
  readonly name: string;
  /** Its version node, such as `IBVERBS_1.1`. */
  readonly version: string;
  /** Bytes, if it is a variable; undefined for a function. */
  readonly variableBytes: number | undefined;
}

interface Section {
  readonly type: number;
  readonly offset: number;
  readonly size: number;
  readonly link: number;
}

/**
 * Functions and variables that the library defines, under their default versions. Throws ERR_ROCE_MALFORMED for another
 * file.
 */
export function definedSymbols(file: Buffer): DynamicSymbol[] {
  if (file.length < 64 || file.readUInt32BE(0) !== 0x7f454c46 || file[4] !== 2 || file[5] !== 1) {
    throw new RoceError('ERR_ROCE_MALFORMED', 'this is no 64-bit little-endian ELF file');
  }
  const sections = sectionsOf(file);
  const symbols = sections.find(({ type }) => type === SHT_DYNSYM);
  const versions = sections.find(({ type }) => type === SHT_GNU_VERSYM);
  const definitions = sections.find(({ type }) => type === SHT_GNU_VERDEF);
  if (symbols === undefined || versions === undefined || definitions === undefined) {
    throw new RoceError('ERR_ROCE_MALFORMED', 'this library has no versioned symbols');
  }
  const strings = sections[symbols.link];
  const nodes = versionNodes(file, definitions, sections[definitions.link]);
  const found: DynamicSymbol[] = [];
  for (let i = 1; i < symbols.size / SYMBOL_BYTES; i++) {
    const at = symbols.offset + i * SYMBOL_BYTES;
    const isDefined = file.readUInt16LE(at + 6) !== 0;
    const type = file[at + 4] & 15;
    const index = file.readUInt16LE(versions.offset + 2 * i);
    const version = nodes.get(index);
    if (!isDefined || (index & HIDDEN) !== 0 || version === undefined) continue;
    if (type !== STT_FUNC && type !== STT_OBJECT) continue;
    const variableBytes = type === STT_OBJECT ? Number(file.readBigUInt64LE(at + 16)) : undefined;
    const name = textAt(file, strings.offset + file.readUInt32LE(at));
    if (name !== version) found.push({ name, version, variableBytes });
  }
  return found;
}

function sectionsOf(file: Buffer): Section[] {
  const start = Number(file.readBigUInt64LE(40));
  const bytes = file.readUInt16LE(58);
  return Array.from({ length: file.readUInt16LE(60) }, (_, i) => {
    const at = start + i * bytes;
    return {
      type: file.readUInt32LE(at + 4),
      offset: Number(file.readBigUInt64LE(at + 24)),
      size: Number(file.readBigUInt64LE(at + 32)),
      link: file.readUInt32LE(at + 40),
    };
  });
}

/** The first definition is the library itself. */
function versionNodes(file: Buffer, { offset }: Section, strings: Section): Map<number, string> {
  const nodes = new Map<number, string>();
  for (let at = offset; ; ) {
    const isBase = (file.readUInt16LE(at + 2) & 1) !== 0;
    const name = file.readUInt32LE(at + file.readUInt32LE(at + 12));
    if (!isBase) nodes.set(file.readUInt16LE(at + 4), textAt(file, strings.offset + name));
    const next = file.readUInt32LE(at + 16);
    if (next === 0) return nodes;
    at += next;
  }
}

function textAt(file: Buffer, offset: number): string {
  return file.toString('latin1', offset, file.indexOf(0, offset));
}
