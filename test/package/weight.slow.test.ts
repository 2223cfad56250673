/** What an import of the package costs a bundle: kilobytes, and packages. */

import { build, type Metafile } from 'esbuild';
import { describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { SPECIFIERS } from '../support/installed-package.js';

/** The examples import the package by its name, and so does a program in their folder. */
const FOLDER = 'examples';

interface Weight {
  readonly bytes: number;
  readonly packages: readonly string[];
}

async function weigh(program: string): Promise<Weight> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: program, resolveDir: FOLDER },
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    write: false,
    metafile: true,
    outfile: 'bundle.js',
  });
  return { bytes: outputFiles[0].contents.length, packages: packagesIn(metafile) };
}

/** What is left of them once what nobody uses is gone. */
function packagesIn({ outputs }: Metafile): string[] {
  const inputs = Object.values(outputs).flatMap(({ inputs }) => Object.entries(inputs));
  const kept = inputs.filter(([, { bytesInOutput }]) => bytesInOutput > 0);
  const names = kept.map(([path]) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]);
  return [...new Set(names.filter((name) => name !== undefined))].sort();
}

describe.runIf(isBuilt)('a minified bundle', () => {
  it('of an error class holds that class', async () => {
    const { bytes, packages } = await weigh("import { RoceError } from 'rocev2'; console.log(RoceError);");
    expect(packages).toEqual([]);
    expect(bytes).toBeLessThan(5_000); // The bar is 30 KB.
  });

  it('of openDevice and connect takes at most 316 KB, packages included', async () => {
    const { bytes, packages } = await weigh(
      "import { connect, openDevice } from 'rocev2'; console.log(connect, openDevice);",
    );
    expect(packages).toEqual(['pure-rand', 'tinyqueue']);
    expect(bytes).toBeGreaterThan(150_000); // It is the engine that is weighed.
    expect(bytes).toBeLessThan(316_000); // Mapped regions, checks of arguments, FLUSH and ATOMIC WRITE.
  });

  /** Telemetry and validation of documents are no part of the library until they are asked for. */
  it.each(SPECIFIERS.filter((name) => !/\/(?:commands|internal)\b|@rocev2\/command$/.test(name)))(
    'of all of %s has no package beside small ones',
    async (entry) => {
      const { packages } = await weigh(`import * as all from '${entry}'; console.log(all);`);
      const small = ['eventemitter3', 'p-queue', 'p-timeout', 'pure-rand', 'tinyqueue'];
      // It checks scenarios, which are files of people.
      if (['@rocev2/lab/sim', '@rocev2/command/schema'].includes(entry)) small.push('zod');
      expect(packages.filter((name) => !small.includes(name))).toEqual([]);
    },
  );

  it('of a module that uses zod has zod: the list of packages is one', async () =>
    expect(
      (
        await weigh(
          "import * as schema from '../build/packages/command/src/schema/quantities.js'; console.log(schema);",
        )
      ).packages,
    ).toContain('zod'));
});
