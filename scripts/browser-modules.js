// For builds that run in browsers: the modules that use Node.js are replaced by others.
//
// A module NAME.ts has a replacement if NAME-in-browsers.ts is beside it. Builtin modules of Node.js that remain are empty; `nodeModulesIn` names
// those that the output uses, so that a build can fail.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const EMPTY = 'builtin-of-node';

/** A plugin of esbuild. */
export const browserModules = {
  name: 'browser-modules',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.{1,2}\/.*\.js$/ }, ({ path, resolveDir }) => {
      const replacement = join(resolveDir, path.replace(/\.js$/, '-in-browsers.ts'));
      return existsSync(replacement) ? { path: replacement } : undefined;
    });
    onResolve({ filter: /^node:/ }, ({ path }) => ({ path, namespace: EMPTY, sideEffects: false }));
    onLoad({ filter: /.*/, namespace: EMPTY }, () => ({ contents: 'module.exports = {};', loader: 'js' }));
  },
};

/** The modules of Node.js that the output of a build uses, each with the files that import it. */
export function nodeModulesIn({ inputs, outputs }) {
  const kept = new Set(
    Object.values(outputs).flatMap((output) =>
      Object.entries(output.inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
    ),
  );
  return [...kept]
    .filter((path) => path.startsWith(`${EMPTY}:`))
    .map((path) => {
      const importers = [...kept].filter((file) => inputs[file].imports.some((one) => one.path === path));
      return `${path.slice(EMPTY.length + 1)}, imported by ${importers.join(', ')}`;
    });
}
