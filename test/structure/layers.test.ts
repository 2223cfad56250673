/** The layer rules see the imports that they forbid: each is planted in a small tree of its own. */

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { cruise, type ICruiseOptions, type ICruiseResult } from 'dependency-cruiser';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const { forbidden, options } = createRequire(import.meta.url)('../../.dependency-cruiser.cjs');

const ALLOWED = {
  'src/qp/allowed.ts': `import '../packet/index.js';`,
  'packages/kv/src/allowed.ts': `import 'rocev2';\nimport '@rocev2/rpc';`,
  'src/verbs/owner.ts': `import './owned.js';`,
  'src/verbs/owned.ts': `import type {} from './owner.js';`,
};

/** The violation of a cycle names one of its files. */
const ENDS_OF_CYCLES = {
  'src/nic/ends-cycle.ts': `import type {} from './begins-cycle.js';`,
  'src/verbs/ends-cycle.ts': `import './begins-cycle.js';`,
};

/** Which rule finds the import of which file. */
const FORBIDDEN = {
  'src/packet/imports-qp.ts': { imports: `import '../qp/index.js';`, rule: 'layer-packet' },
  'src/qp/imports-types.ts': { imports: `import type {} from '../verbs/index.js';`, rule: 'layer-qp' },
  'src/qp/imports-files.ts': { imports: `import 'node:fs';`, rule: 'pure-engine' },
  'src/core/imports-kv.ts': { imports: `import '@rocev2/kv';`, rule: 'transport-imports-no-package' },
  'src/unknown/file.ts': { imports: `import '../core/index.js';`, rule: 'no-unknown-folder' },
  'src/core/imports-nothing.ts': { imports: `import './nothing.js';`, rule: 'no-unresolvable' },
  'packages/kv/src/imports-path.ts': {
    imports: `import '../../../src/core/index.js';`,
    rule: 'entry-points-of-packages',
  },
  'packages/kv/src/imports-extents.ts': { imports: `import '@rocev2/extents';`, rule: 'package-kv' },
  'src/nic/begins-cycle.ts': { imports: `import type {} from './ends-cycle.js';`, rule: 'no-cycles' },
  'src/verbs/begins-cycle.ts': { imports: `import './ends-cycle.js';`, rule: 'no-cycles-of-values' },
};

async function cruised(folders: string[], change: ICruiseOptions): Promise<ICruiseResult> {
  const { tsConfig, enhancedResolveOptions, ...rest } = options;
  const { output } = await cruise(folders, { ...rest, validate: true, ...change }, enhancedResolveOptions);
  return output as ICruiseResult;
}

/** The rule sees one cycle of an import: where there are several, it may be one with types. */
it('src/verbs has no cycle without the imports of types', async () => {
  const { modules } = await cruised(['src/verbs'], { includeOnly: '^src/verbs/', validate: false });
  const needed = new Map(
    modules.map(({ source, dependencies }) => [
      source,
      dependencies.filter((one) => !one.dependencyTypes.includes('type-only')).map(({ resolved }) => resolved),
    ]),
  );
  const loads = (path: string): boolean => needed.get(path)!.every((other) => !needed.has(other));
  for (let next = [...needed.keys()].find(loads); next !== undefined; next = [...needed.keys()].find(loads)) {
    needed.delete(next);
  }
  expect([...needed.keys()]).toEqual([]);
});

describe('the layer rules', () => {
  const root = mkdtempSync(join(tmpdir(), 'layers-'));
  const findings = new Map<string, string[]>();

  function plant(path: string, text: string): void {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }

  function plantPackage(name: string, folder: string): void {
    plant(`${folder}package.json`, JSON.stringify({ name, exports: { '.': { '@rocev2/source': './src/index.ts' } } }));
    plant(`${folder}src/index.ts`, '');
    const link = join(root, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(root, folder), link);
  }

  beforeAll(async () => {
    for (const layer of ['core', 'packet', 'qp', 'verbs']) plant(`src/${layer}/index.ts`, '');
    for (const name of ['kv', 'rpc', 'extents']) plantPackage(`@rocev2/${name}`, `packages/${name}/`);
    plantPackage('rocev2', '');
    for (const [path, text] of Object.entries({ ...ALLOWED, ...ENDS_OF_CYCLES })) plant(path, text);
    for (const [path, { imports }] of Object.entries(FORBIDDEN)) plant(path, imports);
    const { summary } = await cruised(['src', 'packages'], { baseDir: root, ruleSet: { forbidden } });
    for (const { from, rule } of summary.violations) {
      findings.set(from, [...(findings.get(from) ?? []), rule.name]);
    }
  });

  afterAll(() => rmSync(root, { recursive: true }));

  it.each(Object.entries(FORBIDDEN))('find the import of %s', (path, { rule }) => {
    expect(findings.get(path)).toContain(rule);
  });

  it.each(Object.keys(ALLOWED))('allow the imports of %s', (path) => {
    expect(findings.get(path)).toBeUndefined();
  });
});
