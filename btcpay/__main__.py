"""`python -m btcpay` is the command `blocktill`."""

from btcpay.cli.main import main

if __name__ == "__main__":
    main()
