export function whyUnreadable(cause: unknown): string {
  switch (codeOf(cause)) {
    case 'ENOENT':
      return 'there is no such file';
    case 'EISDIR':
      return 'it is a directory';
    case 'ENOTDIR':
      return 'it is not a directory';
    case 'EACCES':
    case 'EPERM':
      return 'permission denied';
    case 'ERR_FS_FILE_TOO_LARGE':
      return 'it is larger than 2 GiB (split it with: editcap -c 1000000 IN OUT)';
    default:
      return cause instanceof Error ? cause.message : String(cause);
  }
}

export function whyUnwritable(cause: unknown): string {
  switch (codeOf(cause)) {
    case 'ENOENT':
      return 'there is no such folder';
    case 'ENOSPC':
      return 'the disk is full';
    case 'EROFS':
      return 'the file system is read-only';
    default:
      return whyUnreadable(cause);
  }
}

function codeOf(cause: unknown): string | undefined {
  return cause instanceof Error ? (cause as NodeJS.ErrnoException).code : undefined;
}
