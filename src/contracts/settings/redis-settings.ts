export type RedisAddress = ReturnType<typeof parseRedisAddress>;

/** @param list comma-separated URLs of one scheme; the first login is used for all */
export function parseRedisAddress(list: string) {
  const nodes = list.split(',').map((node) => node.trim());
  const { protocol, username, password } = new URL(nodes[0] as string);
  return {
    nodes,
    /** A Cluster reports nodes without logins. */
    login: {
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' && { tls: {} }),
    },
  };
}

/**
 * hash-max-listpack-value (hash-max-ziplist-value in Valkey and up to Redis 6), default 64. Larger values end
 * the compact encoding, in which a pair takes 155 instead of 213 bytes for a learner with 40 skills, and an
 * event id 44 instead of 75 for one with 60 (MEMORY USAGE, SAMPLES 0).
 */
export const maxListpackBytes = 1024;

/**
 * auto-aof-rewrite-min-size, default 64mb: a small deployment would rewrite its file every 80,000 answers, at
 * 2 to 5 µs per answer. Redis loads 256 MB in 1.6 s.
 */
export const minRewriteSize = '256mb';
