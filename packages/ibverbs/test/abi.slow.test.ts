/** Our declarations of the binary interface have the sizes and offsets of the installed header. */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const OURS = resolve('packages/ibverbs/native/abi.h');
const THEIRS = '/usr/include/infiniband/verbs.h';
/** Members that have other names there, or are younger than its oldest release. */
const OTHERWISE =
  /^(unused_\w+|unsupported|placeholder|features|halves|base|ops|create_cq|xrc|wr_flush|wr_atomic_write|version_tclass_flow)$/;
/** Longer in younger releases: a part of it is declared. */
const PARTIAL = ['ibv_srq_init_attr_ex', 'ibv_qp_ex'];

/** Names of structures with the names of their members, read from the text. */
function structures(header: string): Map<string, string[]> {
  const text = header.replace(/\/\/.*/g, '');
  const found = new Map<string, string[]>();
  for (const [, name, body] of text.matchAll(/^struct (\w+) \{(.*?)^\};/gms)) {
    const flat = body.replace(/(?:union|struct) \{.*?\n {2}\} (\w+);/gs, 'int $1;');
    const members = flat.split(';').flatMap((declaration) => {
      const pointer = /\(\*(\w+)\)\(/.exec(declaration);
      if (pointer !== null) return [pointer[1]];
      const parts = declaration.replace(/\[[^\]]*\]/g, '').split(',');
      return parts.map((part) => /(\w+)\s*$/.exec(part)?.[1] ?? '').filter(Boolean);
    });
    found.set(name, members);
  }
  return found;
}

const folder = mkdtempSync(join(tmpdir(), 'rocev2-abi-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Lines `STRUCTURE.MEMBER OFFSET` as a compiler sees the header. */
function layout(include: string, members: ReadonlyMap<string, readonly string[]>): string[] {
  const lines = [...members].flatMap(([name, fields]) => [
    ...(PARTIAL.includes(name) ? [] : [`printf("${name} %zu\\n", sizeof(struct ${name}));`]),
    ...fields
      .filter((field) => !OTHERWISE.test(field))
      .map((field) => `printf("${name}.${field} %zu\\n", offsetof(struct ${name}, ${field}));`),
  ]);
  const source = join(folder, 'layout.c');
  const program = `#include <stddef.h>\n#include <stdio.h>\n#include "${include}"\nint main(void) { ${lines.join('\n')} }`;
  writeFileSync(source, program);
  execFileSync('cc', ['-o', join(folder, 'layout'), source]);
  return execFileSync(join(folder, 'layout'), { encoding: 'utf8' }).trim().split('\n');
}

it.skipIf(!existsSync(THEIRS))('as <infiniband/verbs.h>, where libibverbs-dev is installed', () => {
  const members = structures(readFileSync(OURS, 'utf8'));
  expect(members.size).toBeGreaterThan(30);
  expect(layout(OURS, members)).toEqual(layout(THEIRS, members));
});
