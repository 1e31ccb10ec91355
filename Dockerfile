# One image for the worker and for every other command: `docker run … repave doctor`.
# Not Alpine: the Temporal SDK's native part needs glibc.

FROM node:22.22.2-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build:image

FROM node:22.22.2-bookworm-slim
# Certificates for TLS to Temporal Cloud: slim images come without.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /src/build/image/ ./
USER node
ENTRYPOINT ["node", "bin/repave.js"]
CMD ["worker"]
