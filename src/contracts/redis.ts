/** REDIS_URL, and required settings of Redis. */

export type RedisAddress = ReturnType<typeof redisAddress>;

/** @param list checked by config.ts: URLs of one scheme, separated by commas; the login of the first is used for all */
export function redisAddress(list: string) {
  const nodes = list.split(',').map((node) => node.trim());
  const { protocol, username, password } = new URL(nodes[0] as string);
  return {
    /** URLs of a single server, or of nodes that know the others of a Cluster. */
    nodes,
    /** A Cluster reports its nodes without logins. */
    login: {
      ...(username !== '' && { username: decodeURIComponent(username) }),
      ...(password !== '' && { password: decodeURIComponent(password) }),
      ...(protocol === 'rediss:' && { tls: {} }),
    },
  };
}

/**
 * Value size up to which Redis keeps a hash as one listpack (hash-max-listpack-value, 64 by default; hash-max-ziplist-value in
 * Valkey and versions up to 6). A pair then takes 155 instead of 213 bytes for a learner with 40 skills, and an event id 44
 * instead of 75 for one with 60 (MEMORY USAGE, SAMPLES 0).
 */
export const listpackBytes = 1024;

/**
 * The append-only file is not rewritten below this size (auto-aof-rewrite-min-size, 64mb by default). An answer writes 900 bytes,
 * so a small deployment rewrote the file every 80,000 answers, at 2 to 5 µs each. Redis reads such a file in 1.6 s at startup.
 */
export const rewriteSize = '256mb';
