"""What is done before a pool runs: `init`, `import`, `config`, `check`, `network`, `service` and `local`."""
