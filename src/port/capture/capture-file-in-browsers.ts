/** Browsers open no files by their paths. */

import { RoceError } from '../../core/errors.js';
import type { CaptureSource } from './capture-source.js';

export async function openFileSource(path: string): Promise<CaptureSource> {
  throw new RoceError(
    'ERR_ROCE_UNSUPPORTED',
    `a browser cannot open ${path}`,
    'pass a file that the user has chosen to CaptureStream.of',
  );
}
