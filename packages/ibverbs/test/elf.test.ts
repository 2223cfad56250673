/** Symbols of an installed library, and what is generated for those that the C library lacks. */

import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { definedSymbols } from '../src/elf.js';
import { stubsFor, versionScript } from '../src/library.js';

const LIBM = ['/lib/x86_64-linux-gnu/libm.so.6', '/lib/aarch64-linux-gnu/libm.so.6', '/lib64/libm.so.6'];

describe('definedSymbols', () => {
  const file = LIBM.find((path) => existsSync(path));

  it.skipIf(file === undefined)('finds functions with their versions in a library', () => {
    const symbols = definedSymbols(readFileSync(file!));
    expect(symbols.length).toBeGreaterThan(100);
    for (const { name, version } of symbols) {
      expect(name).toMatch(/^\w+$/);
      expect(version).toMatch(/^GLIBC_/);
    }
  });

  it('refuses what is no such library', () => {
    expect(() => definedSymbols(Buffer.from('#!/bin/sh\n'))).toThrow(/no 64-bit little-endian ELF/);
    const header = Buffer.alloc(64);
    header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1]);
    expect(() => definedSymbols(header)).toThrow(/no versioned symbols/);
  });
});

describe('generated sources', () => {
  const symbols = [
    { name: 'ibv_open_device', version: 'IBVERBS_1.1', variableBytes: undefined },
    { name: 'ibv_open_xrcd', version: 'IBVERBS_1.1', variableBytes: undefined },
    { name: 'verbs_set_ops', version: 'IBVERBS_PRIVATE_34', variableBytes: undefined },
    { name: 'verbs_provider', version: 'IBVERBS_PRIVATE_34', variableBytes: 8 },
  ];

  it('have a stub for each symbol that is not implemented', () => {
    const text = stubsFor(symbols, new Set(['ibv_open_device']));
    expect(text).toContain('EXPORT long ibv_open_xrcd(void) { return refuse(0); }');
    expect(text).toContain('EXPORT long verbs_set_ops(void) { return refuse(EOPNOTSUPP); }');
    expect(text).toContain('EXPORT char verbs_provider[8];');
    expect(text).not.toContain('ibv_open_device');
  });

  it('give each symbol its version', () => {
    expect(versionScript(symbols)).toBe(
      'IBVERBS_1.1 { global: ibv_open_device; ibv_open_xrcd; };\n' +
        'IBVERBS_PRIVATE_34 { global: verbs_provider; verbs_set_ops; };\n',
    );
  });
});
