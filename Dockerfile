# The service against an external Redis and ClickHouse (ROLE=api or ROLE=pipeline). The embedded servers are left
# out: neither redis-server nor the ClickHouse engine of the chdb package (540 MB) is in this image.
# Debian, because uWebSockets.js has no binaries for musl.
FROM node:22.23.3-bookworm-slim AS node

FROM node AS base
WORKDIR /app
COPY package.json package-lock.json ./

# Optional packages are the engine of chdb and native speed-ups that their packages do without.
FROM base AS packages
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error
# Of the binaries for all systems the one that this image runs.
RUN find node_modules/uWebSockets.js -name '*.node' \
    ! -name "uws_linux_$(node -p process.arch)_$(node -p process.versions.modules).node" -delete

# The bundler's binary is an optional package of esbuild, so this stage takes everything.
FROM base AS build
RUN npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
COPY tsconfig.json ./
COPY src src
COPY workers workers
RUN node src/build.mjs dist --bundles

FROM node
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000
WORKDIR /app
COPY --from=packages /app/package.json ./
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
USER node
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
# The exec form: node is process 1 and gets SIGTERM itself. The first argument names the bundle: main starts the
# service, cli-keys manages API keys, cli-import imports a log.
ENTRYPOINT ["node", "-e", "const [, name, ...args] = process.argv; import(`/app/dist/bundle/${name}.js`).then((module) => module.main(args))", "--"]
CMD ["main"]
